------------------------------- MODULE Locks -------------------------------
(***************************************************************************)
(* Locks that a site hands over: rules C4 and C5 of docs/protocol.md.      *)
(*                                                                         *)
(* A home, a site with two members, and a third member below the home; one *)
(* segment, and locks to write.  The members below the site may also send  *)
(* to the home by an edge of their own.  A commit is sent under any number *)
(* that its sender knows, or guesses: whoever has written nothing but what *)
(* a lock allows did so because nodes refused the rest.                    *)
(*                                                                         *)
(* Between the site and the home messages take their time, in order.       *)
(* Between a member and the site, and by a member's own edge, they arrive  *)
(* at once: a later arrival is a later sending.                            *)
(*                                                                         *)
(* The home judges a commit when it comes.  One that waits for a page is   *)
(* not here: it is judged twice, when it comes and when it is executed.    *)
(*                                                                         *)
(* Time is in ticks.  A lease is the number of ticks that remain.  All     *)
(* clocks go alike: the margin for clocks is in WriteLease and HardAnswers.*)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Asks,       \* for each member, how often it calls for the lock
    Keeps,      \* how often members ask for more time, all together
    Commits,    \* for each member, how many commits it sends
    Lease,      \* ticks
    Range,      \* how many numbers a lock has that is granted by way of the site
    Faults,     \* how many of the following happen
    Kinds       \* "edge": the site's edge breaks; "site", "home": that restarts

(* Guards: TRUE is Thorp. *)
CONSTANTS
    OpenWaits,      \* nothing is handed over while a commit under it is open
    EdgeCounts,     \* a lent number counts by the edge of the site alone
    NewLife,        \* a site that restarts is another one
    OlderTold,      \* the home learns the number before a commit of an older one
    LastAlone,      \* from then on it takes that number alone
    OwnNumber,      \* the site passes up what the holder sends under the number
    HomeWord,       \* the site forgets a lock when the home says so
    TellsRest,      \* whoever gets a lock is told the rest of the lease
    LendsTracked    \* the home lends only what the site has said that it tracks

VARIABLES
    home,   \* the lock; fence 0: there is none.  who waits, in order
    site,   \* what it knows of the lock; fence 0: of none
    mem,    \* the members
    up,     \* from the site to the home
    down,   \* from the home to the site
    ghost   \* what the checker alone knows

vars == <<home, site, mem, up, down, ghost>>

Below == {1, 2}
Members == {1, 2, 3}

NoLock == [fence |-> 0, holder |-> 0, via |-> 0, tracked |-> FALSE, lent |-> FALSE,
           last |-> 0, recalled |-> FALSE, left |-> 0]
NoEntry == [fence |-> 0, number |-> 0, holder |-> 0, told |-> FALSE, lent |-> FALSE,
            recalled |-> FALSE, ending |-> FALSE, left |-> 0, open |-> 0, may |-> {},
            queue |-> <<>>]

Init ==
    /\ home = [lock |-> NoLock, queue |-> <<>>, highest |-> 0, done |-> 0]
    /\ site = [entry |-> NoEntry, life |-> 1, at |-> 0, joined |-> TRUE]
    /\ mem = [m \in Members |-> [number |-> 0, left |-> 0, wants |-> FALSE, age |-> 0,
                                 keeps |-> FALSE, known |-> {}, sent |-> 0, asked |-> 0]]
    /\ up = <<>>
    /\ down = <<>>
    /\ ghost = [beside |-> FALSE, stale |-> FALSE, faults |-> 0, keeps |-> 0]

Less(n, k) == IF n > k THEN n - k ELSE 0
Max(a, b) == IF a > b THEN a ELSE b
Without(queue, m) == SelectSeq(queue, LAMBDA n : n # m)
Believes(m) == mem[m].number > 0 /\ mem[m].left > 0
BelievesIn(members, m) == members[m].number > 0 /\ members[m].left > 0
Of(f, n) == f > 0 /\ n >= f /\ n < f + Range

(***************************************************************************)
(* The home                                                                *)
(***************************************************************************)

(* Whether the lock counts for a number that comes by this way: the life   *)
(* of the site, or 0.                                                      *)
Counts(m, n, via) ==
    LET k == home.lock
    IN /\ k.fence > 0 /\ k.left > 0
       /\ IF ~k.lent THEN n = k.fence /\ m = k.holder
          ELSE /\ (EdgeCounts => via = k.via)
               /\ Of(k.fence, n)
               /\ (n = k.fence => m = k.holder)
               /\ ((LastAlone /\ k.last > 0) => n = k.last)

Sends(message) == IF site.joined THEN Append(down, message) ELSE down

(* A lock ends.  The site is told, unless it asked for that.               *)
Over(k, tells) ==
    IF tells /\ k.via = site.life /\ k.via > 0
    THEN Sends([type |-> "Over", m |-> 0, f |-> k.fence, n |-> 0])
    ELSE down

(* A commit that is accepted while another session believes.               *)
Accepts(m, n, via, rest) ==
    /\ home' = [home EXCEPT !.done = @ + 1]
    /\ ghost' = [ghost EXCEPT !.beside =
                    @ \/ \E o \in Members : Believes(o) /\ (o # m \/ mem[o].number # n)]
    /\ down' = Sends([type |-> "Step", m |-> m, f |-> via, n |-> n])
    /\ up' = rest

Grant ==
    /\ home.lock.fence = 0 /\ home.queue # <<>>
    /\ LET m == Head(home.queue)
           f == home.highest + 1
           via == IF m \in Below /\ site.joined THEN site.life ELSE 0
       IN /\ (m \in Below => site.joined)
          /\ home' = [home EXCEPT
                !.lock = [NoLock EXCEPT !.fence = f, !.holder = m, !.via = via, !.left = Lease],
                !.queue = Tail(@), !.highest = IF via > 0 THEN f + Range - 1 ELSE f]
          /\ down' = (IF m \in Below THEN Sends([type |-> "Locked", m |-> m, f |-> f, n |-> f]) ELSE down)
          /\ mem' = (IF m \in Below THEN mem
                    ELSE [mem EXCEPT ![m].number = f, ![m].left = Less(Lease, mem[m].age),
                                     ![m].wants = FALSE, ![m].known = @ \cup {f}])
    /\ UNCHANGED <<site, up, ghost>>

(* Whoever waits below the site of the holder waits there.                 *)
Lend ==
    LET k == home.lock
    IN /\ k.fence > 0 /\ k.left > 0 /\ k.via = site.life /\ site.joined /\ ~k.recalled
       /\ (LendsTracked => k.tracked)
       /\ home.queue # <<>>
       /\ \A i \in 1..Len(home.queue) : home.queue[i] \in Below
       /\ home' = [home EXCEPT !.lock.lent = TRUE, !.queue = Tail(@)]
       /\ down' = Sends([type |-> "Lent", m |-> Head(home.queue), f |-> k.fence, n |-> 0])
    /\ UNCHANGED <<site, mem, up, ghost>>

Recall ==
    LET k == home.lock
    IN /\ k.lent /\ ~k.recalled
       /\ \E i \in 1..Len(home.queue) : home.queue[i] \notin Below
       /\ home' = [home EXCEPT !.lock.recalled = TRUE]
       /\ down' = (IF k.via = site.life THEN Sends([type |-> "Recall", m |-> 0, f |-> k.fence, n |-> 0])
                  ELSE down)
    /\ UNCHANGED <<site, mem, up, ghost>>

(* Its time is over.                                                       *)
Ends ==
    /\ home.lock.fence > 0 /\ home.lock.left = 0
    /\ home' = [home EXCEPT !.lock = NoLock]
    /\ down' = Over(home.lock, TRUE)
    /\ UNCHANGED <<site, mem, up, ghost>>

(* The home takes what comes from the site.                                *)
HomeTakes ==
    /\ up # <<>>
    /\ LET g == Head(up)
           k == home.lock
           counts == Counts(g.m, g.n, g.life)
       IN IF g.type = "Lock" THEN
            /\ home' = [home EXCEPT !.queue = Append(Without(@, g.m), g.m)]
            /\ up' = Tail(up)
            /\ UNCHANGED <<site, mem, down, ghost>>
          ELSE IF g.type = "Commit" THEN
            IF counts
            THEN Accepts(g.m, g.n, g.life, Tail(up)) /\ UNCHANGED <<site, mem>>
            ELSE /\ up' = Tail(up)
                 /\ down' = Sends([type |-> "Refused", m |-> g.m, f |-> g.life, n |-> g.n])
                 /\ UNCHANGED <<home, site, mem, ghost>>
          ELSE IF g.type = "Keep" THEN
            /\ up' = Tail(up)
            /\ home' = (IF counts THEN [home EXCEPT !.lock.left = Lease] ELSE home)
            /\ down' = (IF counts THEN Sends([type |-> "Kept", m |-> g.m, f |-> k.fence, n |-> g.n])
                       ELSE Sends([type |-> "NotKept", m |-> g.m, f |-> 0, n |-> g.n]))
            /\ UNCHANGED <<site, mem, ghost>>
          ELSE IF g.type = "Unlock" THEN
            /\ up' = Tail(up)
            /\ home' = (IF counts THEN [home EXCEPT !.lock = NoLock] ELSE home)
            /\ down' = Sends([type |-> "Unlocked", m |-> g.m, f |-> g.f, n |-> g.n])
            /\ UNCHANGED <<site, mem, ghost>>
          ELSE IF g.type = "Tracks" THEN
            LET is == k.fence = g.f /\ k.via = g.life
            IN /\ up' = Tail(up)
               /\ home' = (IF is THEN [home EXCEPT !.lock.tracked = TRUE] ELSE home)
               /\ down' = (IF is THEN down
                          ELSE Sends([type |-> "Over", m |-> 0, f |-> g.f, n |-> 0]))
               /\ UNCHANGED <<site, mem, ghost>>
          ELSE \* "Ended": the site hands it over no more
            LET is == k.fence = g.f /\ k.via = g.life
            IN /\ up' = Tail(up)
               /\ home' = (IF ~is THEN home
                          ELSE IF k.lent
                          THEN [home EXCEPT !.lock.recalled = TRUE, !.lock.last = Max(@, g.n)]
                          ELSE [home EXCEPT !.lock.tracked = FALSE])
               /\ down' = (IF is /\ k.lent THEN down
                          ELSE Sends([type |-> "Over", m |-> 0, f |-> g.f, n |-> 0]))
               /\ UNCHANGED <<site, mem, ghost>>

(***************************************************************************)
(* The site                                                                *)
(***************************************************************************)

Msg(type, m, f, n) == [type |-> type, m |-> m, f |-> f, n |-> n, life |-> site.life]
Lock(m) == Msg("Lock", m, 0, 0)

RECURSIVE Again(_)
Again(queue) == IF queue = <<>> THEN <<>> ELSE <<Lock(Head(queue))>> \o Again(Tail(queue))

(* A session below gets the lock: it counts from its request.              *)
Gets(m, n, told) ==
    [mem EXCEPT ![m].number = n, ![m].left = Less(told, mem[m].age), ![m].wants = FALSE,
                ![m].known = @ \cup {n}]

(* Another session below waits at the home.                                *)
Waits(m) == \E o \in Below : o # m /\ mem[o].wants

(* Whoever gets it has all that was committed, but for what it wrote.      *)
Stale(queue, n) == \E i \in 1..Len(queue) : queue[i].type = "Step" /\ queue[i].n < n

(* It takes what comes.                                                    *)
SiteTakes ==
    /\ down # <<>> /\ site.joined
    /\ LET g == Head(down)
           e == site.entry
           left == Less(Lease, mem[g.m].age)
           rest == Tail(down)
       IN IF g.type \in {"Step", "Refused"} THEN
            LET mine == g.f = site.life /\ (Of(e.fence, g.n))
            IN /\ site' = [site EXCEPT !.at = IF g.type = "Step" THEN @ + 1 ELSE @,
                                       !.entry.open = IF mine THEN Less(@, 1) ELSE @]
               /\ down' = rest
               /\ UNCHANGED <<home, mem, up, ghost>>
          ELSE IF g.type = "Locked" THEN
            /\ site' = [site EXCEPT !.entry =
                    [NoEntry EXCEPT !.fence = g.f, !.number = g.f, !.holder = g.m, !.left = left,
                                    !.may = {g.m}, !.told = Waits(g.m)]]
            /\ mem' = Gets(g.m, g.f, Lease)
            /\ ghost' = [ghost EXCEPT !.stale = @ \/ Stale(rest, g.f)]
            /\ down' = rest
            /\ up' = (IF Waits(g.m) THEN Append(up, Msg("Tracks", 0, g.f, 0)) ELSE up)
            /\ UNCHANGED home
          ELSE IF g.type = "Lent" THEN
            /\ down' = rest
            /\ IF e.fence = g.f
               THEN /\ site' = (IF e.recalled
                            THEN [site EXCEPT !.entry.lent = TRUE]
                            ELSE [site EXCEPT !.entry.lent = TRUE,
                                              !.entry.may = @ \cup {g.m},
                                              !.entry.queue = Append(@, g.m)])
                    /\ up' = (IF e.recalled THEN Append(up, Lock(g.m)) ELSE up)
               ELSE /\ up' = up \o <<Msg("Ended", 0, g.f, g.f), Lock(g.m)>>
                    /\ UNCHANGED site
            /\ UNCHANGED <<home, mem, ghost>>
          ELSE IF g.type = "Recall" THEN
            /\ down' = rest
            /\ site' = (IF e.fence = g.f
                       THEN [site EXCEPT !.entry.recalled = TRUE, !.entry.queue = <<>>] ELSE site)
            /\ up' = (IF e.fence = g.f THEN up \o Again(e.queue) ELSE up)
            /\ UNCHANGED <<home, mem, ghost>>
          ELSE IF g.type \in {"Over", "Unlocked"} THEN
            /\ down' = rest
            /\ site' = (IF e.fence = g.f /\ e.fence > 0 THEN [site EXCEPT !.entry = NoEntry] ELSE site)
            /\ up' = (IF e.fence = g.f /\ e.fence > 0 THEN up \o Again(e.queue) ELSE up)
            /\ UNCHANGED <<home, mem, ghost>>
          ELSE IF g.type = "Kept" THEN
            /\ down' = rest
            /\ site' = (IF e.fence = g.f THEN [site EXCEPT !.entry.left = Max(@, left)] ELSE site)
            /\ mem' = [mem EXCEPT ![g.m].keeps = FALSE,
                                  ![g.m].left = IF mem[g.m].number = g.n THEN Max(@, left) ELSE @]
            /\ UNCHANGED <<home, up, ghost>>
          ELSE \* "NotKept"
            /\ down' = rest
            /\ mem' = [mem EXCEPT ![g.m].keeps = FALSE]
            /\ UNCHANGED <<home, site, up, ghost>>

(* Obvious, and wrong: it forgets a lock when its time is over.            *)
Forget ==
    /\ ~HomeWord /\ site.entry.fence > 0 /\ site.entry.left = 0
    /\ site' = [site EXCEPT !.entry = NoEntry]
    /\ up' = up \o Again(site.entry.queue)
    /\ UNCHANGED <<home, mem, down, ghost>>

(***************************************************************************)
(* Members below the site                                                  *)
(***************************************************************************)

Ask(m) ==
    /\ m \in Below /\ site.joined
    /\ mem[m].number = 0 /\ ~mem[m].wants /\ ~mem[m].keeps /\ mem[m].asked < Asks[m]
    /\ mem' = [mem EXCEPT ![m].wants = TRUE, ![m].age = 0, ![m].asked = @ + 1]
    /\ LET e == site.entry
           here == e.lent /\ ~e.recalled /\ m \in e.may /\ ~e.ending
           tells == e.fence > 0 /\ ~e.told /\ ~e.recalled /\ ~e.ending
           tracks == IF tells THEN <<Msg("Tracks", 0, e.fence, 0)>> ELSE <<>>
       IN /\ site' = (IF here THEN [site EXCEPT !.entry.queue = Append(@, m)]
                     ELSE [site EXCEPT !.entry.told = @ \/ tells])
          /\ up' = (IF here THEN up ELSE up \o tracks \o <<Lock(m)>>)
    /\ UNCHANGED <<home, down, ghost>>

After(e) == e.number + 1

MayHandOver(e) ==
    /\ e.lent /\ ~e.recalled /\ e.queue # <<>> /\ e.left > 0
    /\ ~e.ending
    /\ (OpenWaits => e.open = 0)
    /\ Of(e.fence, After(e))

Unlock(m) ==
    /\ m \in Below /\ site.joined /\ mem[m].number > 0
    /\ LET e == site.entry
           n == mem[m].number
           is == e.fence > 0 /\ e.number = n /\ e.holder = m
           free == [mem EXCEPT ![m].number = 0, ![m].left = 0, ![m].keeps = FALSE]
       IN IF is /\ MayHandOver(e) THEN
            LET o == Head(e.queue)
                told == IF TellsRest THEN e.left ELSE Lease
                to == After(e)
            IN /\ mem' = [free EXCEPT ![o].number = to, ![o].left = Less(told, mem[o].age),
                                      ![o].wants = FALSE, ![o].known = @ \cup {to}]
               /\ site' = [site EXCEPT !.entry.number = to, !.entry.holder = o,
                                       !.entry.queue = Tail(@)]
               /\ ghost' = [ghost EXCEPT !.stale = @ \/ Stale(down, to)]
               /\ UNCHANGED <<home, up, down>>
          ELSE
            /\ mem' = free
            /\ site' = (IF is THEN [site EXCEPT !.entry.ending = TRUE] ELSE site)
            /\ up' = (IF is THEN Append(up, Msg("Unlock", m, e.fence, n))
                     ELSE IF e.fence > 0 THEN up
                     ELSE Append(up, Msg("Unlock", m, n, n)))
            /\ UNCHANGED <<home, down, ghost>>

Keep(m) ==
    /\ m \in Below /\ site.joined /\ Believes(m) /\ ~mem[m].keeps
    /\ ghost.keeps < Keeps
    /\ LET e == site.entry
           n == mem[m].number
           known == Of(e.fence, n)
           passes == known => (n = e.number /\ m = e.holder)
       IN /\ passes
          /\ up' = Append(up, Msg("Keep", m, 0, n))
    /\ mem' = [mem EXCEPT ![m].keeps = TRUE, ![m].age = 0]
    /\ ghost' = [ghost EXCEPT !.keeps = @ + 1]
    /\ UNCHANGED <<home, site, down>>

(* It sends a commit under some number: its own, one that it had, or one   *)
(* that it guesses.                                                        *)
Commit(m, n) ==
    /\ m \in Below /\ site.joined /\ mem[m].sent < Commits[m]
    /\ mem' = [mem EXCEPT ![m].sent = @ + 1]
    /\ LET e == site.entry
           known == Of(e.fence, n)
           older == known /\ n < e.number
           own == n = e.number /\ m = e.holder
           refused == known /\ ~older /\ e.told /\ ~own /\ OwnNumber
           tells == known /\ older /\ OlderTold
           sent == Msg("Commit", m, 0, n)
       IN /\ ~refused
          /\ up' = (IF tells THEN up \o <<Msg("Ended", 0, e.fence, e.number)>>
                                    \o Again(e.queue) \o <<sent>>
                   ELSE Append(up, sent))
          /\ site' = [site EXCEPT !.entry.open = IF known THEN @ + 1 ELSE @,
                                  !.entry.recalled = @ \/ tells,
                                  !.entry.queue = IF tells THEN <<>> ELSE @]
    /\ UNCHANGED <<home, down, ghost>>

(* It sends one by an edge of its own.                                     *)
Direct(m, n) ==
    /\ mem[m].sent < Commits[m]
    /\ n \in mem[m].known
    /\ Counts(m, n, 0)
    /\ home' = [home EXCEPT !.done = @ + 1]
    /\ ghost' = [ghost EXCEPT !.beside =
                    @ \/ \E o \in Members : Believes(o) /\ (o # m \/ mem[o].number # n)]
    /\ down' = Sends([type |-> "Step", m |-> m, f |-> 0, n |-> n])
    /\ mem' = [mem EXCEPT ![m].sent = @ + 1]
    /\ UNCHANGED <<site, up>>

(***************************************************************************)
(* The member below the home                                               *)
(***************************************************************************)
AskOther ==
    /\ mem[3].number = 0 /\ ~mem[3].wants /\ mem[3].asked < Asks[3]
    /\ mem' = [mem EXCEPT ![3].wants = TRUE, ![3].age = 0, ![3].asked = @ + 1]
    /\ home' = [home EXCEPT !.queue = Append(@, 3)]
    /\ UNCHANGED <<site, up, down, ghost>>

UnlockOther ==
    /\ mem[3].number > 0
    /\ mem' = [mem EXCEPT ![3].number = 0, ![3].left = 0]
    /\ home' = (IF home.lock.fence = mem[3].number THEN [home EXCEPT !.lock = NoLock] ELSE home)
    /\ UNCHANGED <<site, up, down, ghost>>

(***************************************************************************)
(* Time and faults                                                         *)
(***************************************************************************)
Tick ==
    /\ home.lock.left > 0 \/ \E m \in Members : Believes(m)
    /\ home' = [home EXCEPT !.lock.left = Less(@, 1)]
    /\ site' = [site EXCEPT !.entry.left = Less(@, 1)]
    /\ mem' = [m \in Members |-> [mem[m] EXCEPT
                    !.left = Less(@, 1),
                    !.age = IF mem[m].wants \/ mem[m].keeps THEN (IF @ < Lease THEN @ + 1 ELSE @) ELSE 0]]
    /\ UNCHANGED <<up, down, ghost>>

(* Members whose calls are lost call again, at once.                       *)
Lost == [m \in Members |->
            IF m \in Below THEN [mem[m] EXCEPT !.wants = FALSE, !.keeps = FALSE] ELSE mem[m]]

Cut ==
    IF site.entry.told
    THEN [site EXCEPT !.joined = FALSE, !.entry.recalled = TRUE, !.entry.ending = FALSE,
                      !.entry.open = 0, !.entry.queue = <<>>]
    ELSE [site EXCEPT !.joined = FALSE, !.entry = NoEntry]

Break ==
    /\ "edge" \in Kinds /\ site.joined /\ ghost.faults < Faults
    /\ site' = Cut
    /\ up' = <<>> /\ down' = <<>>
    /\ mem' = Lost
    /\ home' = [home EXCEPT !.queue = SelectSeq(@, LAMBDA m : m \notin Below)]
    /\ ghost' = [ghost EXCEPT !.faults = @ + 1]

Mend ==
    /\ ~site.joined
    /\ site' = [site EXCEPT !.joined = TRUE, !.at = home.done]
    /\ up' = (IF site.entry.fence > 0
             THEN <<Msg("Ended", 0, site.entry.fence, site.entry.number)>> ELSE <<>>)
    /\ UNCHANGED <<home, mem, down, ghost>>

SiteRestarts ==
    /\ "site" \in Kinds /\ site.joined /\ ghost.faults < Faults
    /\ site' = [entry |-> NoEntry, life |-> IF NewLife THEN site.life + 1 ELSE site.life,
                at |-> home.done, joined |-> FALSE]
    /\ up' = <<>> /\ down' = <<>>
    /\ mem' = Lost
    /\ home' = [home EXCEPT !.queue = SelectSeq(@, LAMBDA m : m \notin Below)]
    /\ ghost' = [ghost EXCEPT !.faults = @ + 1]

(* It knows the lock, and that it has lent it.  The lease is a whole one.  *)
HomeRestarts ==
    /\ "home" \in Kinds /\ site.joined /\ ghost.faults < Faults
    /\ site' = Cut
    /\ up' = <<>> /\ down' = <<>>
    /\ LET k == home.lock
       IN home' = [home EXCEPT !.queue = <<>>,
                    !.lock = IF k.fence = 0 THEN NoLock
                             ELSE [k EXCEPT !.left = Lease, !.last = 0, !.recalled = TRUE,
                                            !.tracked = k.lent, !.via = IF k.lent THEN k.via ELSE 0]]
    /\ mem' = [Lost EXCEPT ![3].wants = FALSE]
    /\ ghost' = [ghost EXCEPT !.faults = @ + 1]

Next ==
    \/ Grant
    \/ Lend
    \/ Recall
    \/ Ends
    \/ HomeTakes
    \/ SiteTakes
    \/ Forget
    \/ \E m \in Below : Ask(m)
    \/ \E m \in Below : Unlock(m)
    \/ \E m \in Below : Keep(m)
    \/ \E m \in Below : \E n \in 1..home.highest : Commit(m, n)
    \/ \E m \in Members : \E n \in 1..home.highest : Direct(m, n)
    \/ AskOther
    \/ UnlockOther
    \/ Tick
    \/ Break
    \/ Mend
    \/ SiteRestarts
    \/ HomeRestarts

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold                                                          *)
(***************************************************************************)

(* Two sessions never believe at once.                                     *)
Exclusive == \A a, b \in Members : (Believes(a) /\ Believes(b)) => a = b

(* Nothing is committed under a lock while another session believes.       *)
Alone == ~ghost.beside

(* Whoever gets the lock has all that was committed.                       *)
Fresh == ~ghost.stale
=============================================================================
