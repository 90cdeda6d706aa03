/*
 * The wake-up protocol of common/ring.h: a ring of one producer and one consumer, each of which
 * sleeps until the other rings its doorbell. A lost wake-up is an end state in which somebody
 * waits at a doorbell that nobody will ring: spin finds it as an invalid end state.
 *
 * Each access to shared memory is a step of its own; all agree on one order of them (the code uses
 * sequentially consistent operations). Data is not modelled, positions only. `bell_c` and `bell_p`
 * are eventfds under an edge-triggered epoll: waking and emptying is one step, and ringing one that
 * has rung changes nothing. Either side may be woken by something else at any time (LOOKS times),
 * since the same thread watches sockets and timers.
 *
 * With -DMUTANT the flag is a plain one and the waker clears it: that loses wake-ups.
 */
#define RECORDS 4
#define ROOM    2
#define LOOKS   2

byte head = 0;
byte tail = 0;
byte sleep_c = 0; /* written by the consumer only: odd while it sleeps */
byte full_p = 0;  /* written by the producer only: odd while it sleeps */
bool bell_c = false;
bool bell_p = false;

#ifdef MUTANT
#define RING(word, bell, rung, seen)                                                               \
    seen = word;                                                                                   \
    if                                                                                             \
    :: seen == 1 -> bell = true; word = 0                                                          \
    :: else                                                                                        \
    fi
#define GO_TO_SLEEP(word, mine) word = 1
#define WAKE(word, mine)
#else
#define RING(word, bell, rung, seen)                                                               \
    seen = word;                                                                                   \
    if                                                                                             \
    :: seen % 2 == 1 && seen != rung -> rung = seen; bell = true                                   \
    :: else                                                                                        \
    fi
#define GO_TO_SLEEP(word, mine) mine = (mine + 1) | 1; word = mine
#define WAKE(word, mine)                                                                           \
    if                                                                                             \
    :: mine % 2 == 1 -> mine++; word = mine                                                        \
    :: else                                                                                        \
    fi
#endif

active proctype producer()
{
    byte put = 0;
    byte seen_tail = 0;
    byte mine = 0;
    byte rung = 0;
    byte seen;
    byte looks = 0;

    do
    :: put == RECORDS -> break
    :: else ->
        seen_tail = tail;
        if
        :: put - seen_tail < ROOM ->
            put++;
            head = put; /* ring_publish */
            RING(sleep_c, bell_c, rung, seen)
        :: else ->
            GO_TO_SLEEP(full_p, mine); /* ring_full_sleep */
            seen_tail = tail;
            if
            :: put - seen_tail < ROOM
            :: else ->
                if
                :: bell_p -> bell_p = false
                :: looks < LOOKS -> looks++
                fi
            fi;
            WAKE(full_p, mine)
        fi
    od
}

active proctype consumer()
{
    byte taken = 0;
    byte seen_head = 0;
    byte mine = 0;
    byte rung = 0;
    byte seen;
    byte looks = 0;

    do
    :: taken == RECORDS -> break
    :: else ->
        seen_head = head;
        if
        :: seen_head != taken ->
            taken++;
            tail = taken; /* ring_release */
            RING(full_p, bell_p, rung, seen)
        :: else ->
            GO_TO_SLEEP(sleep_c, mine); /* ring_sleep */
            seen_head = head;
            if
            :: seen_head != taken
            :: else ->
                if
                :: bell_c -> bell_c = false
                :: looks < LOOKS -> looks++
                fi
            fi;
            WAKE(sleep_c, mine)
        fi
    od
}
