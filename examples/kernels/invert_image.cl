/* The negative of an image of 8-bit channels, four bytes for each work item, and how often each
 * level occurs in it. The levels are counted in local memory first. */
#define LEVELS 256

static uchar4 invert(uchar4 pixel)
{
    return (uchar4)(255) - pixel;
}

__kernel void invert_image(__global const uchar4 *source, __global uchar4 *negative,
                           __global uint *histogram, __local uint *counts, uint pixels)
{
    uint local_id = get_local_id(0);
    uint group_size = get_local_size(0);
    for (uint level = local_id; level < LEVELS; level += group_size) {
        counts[level] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    uint i = get_global_id(0);
    if (i < pixels) {
        uchar4 pixel = invert(source[i]);
        negative[i] = pixel;
        atomic_inc(&counts[pixel.s0]);
        atomic_inc(&counts[pixel.s1]);
        atomic_inc(&counts[pixel.s2]);
        atomic_inc(&counts[pixel.s3]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (uint level = local_id; level < LEVELS; level += group_size) {
        if (counts[level] != 0) {
            atomic_add(&histogram[level], counts[level]);
        }
    }
}
