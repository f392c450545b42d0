/* Finalize: MPI_Finalize that a crash inside cannot turn into a dead rank. */
#ifndef AKIN_NET_FINALIZE_H
#define AKIN_NET_FINALIZE_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * MPI_Finalize under a guard. Call from one thread, once, when MPI has nothing
 * left to do.
 *
 * \return 0, or the signal of the crash that was survived.
 */
int akini_mpi_finalize(void);

#ifdef __cplusplus
}
#endif

#endif
