/* Items: messages and requests on their way, from pools by size. */
#include "net/net_internal.h"

#include <stdlib.h>
#include <utlist.h>

/* Token messages and heartbeats fit the small classes, so that the path of a
 * token asks malloc for nothing once the pools are warm. */
static const size_t class_bytes[AKINI_ITEM_CLASSES] = {256, 1024, 4096, 16384,
                                                       65536};
#define POOLED_PER_CLASS 64

akini_item_t *akini_item_get(akin_net_t *net, uint32_t rank, size_t bytes)
{
    int slot = 0;
    while (slot < AKINI_ITEM_CLASSES && bytes > class_bytes[slot])
        slot++;
    akini_item_t *item = NULL;
    if (slot < AKINI_ITEM_CLASSES) {
        bytes = class_bytes[slot];
        item = net->pool[slot];
    }
    if (item != NULL) {
        net->pool[slot] = item->next;
        net->n_pooled[slot]--;
    } else {
        if (bytes > SIZE_MAX - sizeof(*item))
            return NULL;
        item = malloc(sizeof(*item) + bytes);
        if (item == NULL)
            return NULL;
    }
    item->prev = NULL;
    item->next = NULL;
    item->list = NULL;
    item->net = net;
    item->rank = rank;
    item->size_class = slot;
    item->complete = 0;
    return item;
}

void akini_item_put(akini_item_t *item)
{
    if (item == NULL)
        return;
    akini_item_unlist(item);
    akin_net_t *net = item->net;
    int slot = item->size_class;
    if (slot == AKINI_ITEM_CLASSES || net->n_pooled[slot] == POOLED_PER_CLASS) {
        free(item);
        return;
    }
    item->next = net->pool[slot];
    net->pool[slot] = item;
    net->n_pooled[slot]++;
}

void akini_item_enlist(akini_item_t *item, akini_item_t **list)
{
    akini_item_unlist(item);
    DL_APPEND(*list, item);
    item->list = list;
}

void akini_item_unlist(akini_item_t *item)
{
    if (item->list == NULL)
        return;
    DL_DELETE(*item->list, item);
    item->list = NULL;
}

void akini_item_pool_cleanup(akin_net_t *net)
{
    for (int slot = 0; slot < AKINI_ITEM_CLASSES; slot++) {
        while (net->pool[slot] != NULL) {
            akini_item_t *item = net->pool[slot];
            net->pool[slot] = item->next;
            free(item);
        }
        net->n_pooled[slot] = 0;
    }
}
