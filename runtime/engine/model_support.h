/* Model support: the options of the architecture that the engine has. */
#ifndef AKIN_ENGINE_MODEL_SUPPORT_H
#define AKIN_ENGINE_MODEL_SUPPORT_H

#include "engine/config_reader.h"

/**
 * Refuse a config.json that asks for what the engine has not got: rope scaling,
 * sliding windows, dense layers, attention bias, quantisation, another
 * activation or weight type.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_UNSUPPORTED: the message names key, value and choice.
 * \return AKIN_ERR_FORMAT: a value of the wrong type.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t
akini_model_support_check(const akini_config_reader_t *r) AKIN_MUST_CHECK;

#endif
