------------------------------ MODULE TwoPhase ------------------------------
(***************************************************************************)
(* A transaction over several homes: rule 10 of docs/protocol.md, with the *)
(* watermarks of rule 5 and the restart of rule 12.                        *)
(*                                                                         *)
(* There are no messages and no asker in this model, and that is the       *)
(* point.  Votes and outcomes are records of a log.  Durable records never *)
(* change, so whoever has heard of one may act on it at any time: an       *)
(* action that looks at another home's durable records is a message that   *)
(* arrives, late, twice or never.  The asker has no log and no say: its    *)
(* crash at any step is that the next action is somebody else's.           *)
(*                                                                         *)
(* Home h holds one object, which has the same number.                     *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Homes,
    Reads,      \* what each transaction reads: <<{1}, {2}>>
    Writes,     \* and writes
    Stamps,     \* whether there are clocks, stamps and watermarks
    Ticks,      \* how far clocks run by themselves
    Ceilings,   \* how far they are reserved
    Crashes     \* how often each home crashes

(* Guards: TRUE is Thorp. *)
CONSTANTS
    AbortNeedsNo,       \* abort only on a logged no: nobody may time out
    DurableVotes,       \* a vote is told only when it is durable
    LocksReads,         \* a vote locks what was read, not only what was written
    VotesHaveSets,      \* a vote is logged with both sets: locks survive a crash
    BelowDoubt,         \* a watermark stays strictly below every vote in doubt
    HighestVote,        \* the common stamp is the highest vote
    Ceiling             \* stamps and watermarks stay below a durable ceiling

VARIABLES
    rec,        \* what each home's log says of each transaction
    disk,       \* as much of it as a crash leaves
    clock,      \* lost in a crash
    ceiling,    \* durable
    promised,   \* the highest watermark that was ever told
    evidence,   \* of each transaction: its position at each home, or nothing
    forgotten,  \* locks lost in a crash (only without the guard)
    crashes

vars == <<rec, disk, clock, ceiling, promised, evidence, forgotten, crashes>>

Txns == DOMAIN Reads
PartsOf(t) == Reads[t] \cup Writes[t]
NotBegun == <<>>
Unknown == [is |-> "unknown", stamp |-> 0, at |-> 0, late |-> FALSE]

Init ==
    /\ rec = [h \in Homes |-> [t \in Txns |-> Unknown]]
    /\ disk = rec
    /\ clock = [h \in Homes |-> 0]
    /\ ceiling = [h \in Homes |-> 0]
    /\ promised = [h \in Homes |-> 0]
    /\ evidence = [t \in Txns |-> NotBegun]
    /\ forgotten = [h \in Homes |-> {}]
    /\ crashes = [h \in Homes |-> 0]

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
Highest(S) == CHOOSE n \in S : \A k \in S : k <= n
Lowest(S) == CHOOSE n \in S : \A k \in S : n <= k

(***************************************************************************)
(* What the logs say                                                       *)
(***************************************************************************)
Heard(h, t) == IF DurableVotes THEN disk[h][t] ELSE rec[h][t]
SaidYes(r) == r.is \in {"yes", "commit"}
SaidNo(r) == r.is = "no"
InDoubt(h) == {t \in Txns : rec[h][t].is = "yes"}
Position(r) == Cardinality({t \in Txns : r[t].is = "commit"})

Stale(h, t) ==
    /\ h \in Reads[t]
    /\ \E u \in Txns : h \in Writes[u] /\ rec[h][u].is = "commit" /\ rec[h][u].at > evidence[t][h]

Conflict(h, t, u) ==
    \/ h \in Writes[t] \cap Writes[u]
    \/ h \in Reads[t] \cap Writes[u]
    \/ LocksReads /\ h \in Writes[t] \cap Reads[u]

Record(h, t, r) == rec' = [rec EXCEPT ![h][t] = r]

(***************************************************************************)
(* Actions                                                                 *)
(***************************************************************************)
Begin(t) ==
    /\ evidence[t] = NotBegun
    /\ evidence' = [evidence EXCEPT ![t] = [h \in Homes |-> Position(disk[h])]]
    /\ UNCHANGED <<rec, disk, clock, ceiling, promised, forgotten, crashes>>

Asked(h, t) == evidence[t] # NotBegun /\ h \in PartsOf(t) /\ rec[h][t].is = "unknown"

(* The request reaches a home.  What conflicts with a commit in doubt is   *)
(* refused as busy: nothing is recorded, so nothing changes here.          *)
VoteYes(h, t) ==
    /\ Asked(h, t)
    /\ Stamps => clock[h] < ceiling[h]
    /\ ~Stale(h, t)
    /\ \A u \in InDoubt(h) \ forgotten[h] : ~Conflict(h, t, u)
    /\ LET stamp == IF Stamps THEN clock[h] + 1 ELSE 0
       IN /\ clock' = [clock EXCEPT ![h] = stamp]
          /\ Record(h, t, [Unknown EXCEPT !.is = "yes", !.stamp = stamp])
    /\ UNCHANGED <<disk, ceiling, promised, evidence, forgotten, crashes>>

(* It read what has changed; or anybody who wants it finished asks a home  *)
(* that has not heard of it, and the refusal is recorded (rule 11), so     *)
(* that a request that comes later finds it.                               *)
VoteNo(h, t) ==
    /\ Asked(h, t)
    /\ Record(h, t, [Unknown EXCEPT !.is = "no"])
    /\ UNCHANGED <<disk, clock, ceiling, promised, evidence, forgotten, crashes>>

(* Anybody who has heard every vote tells a home that it is committed: the *)
(* common stamp is the highest vote, and the home's clock moves past it.   *)
(* A home that has committed already shows the common stamp as its vote.   *)
Commit(h, t) ==
    /\ t \in InDoubt(h)
    /\ \A g \in PartsOf(t) : SaidYes(Heard(g, t))
    /\ LET votes == {Heard(g, t).stamp : g \in PartsOf(t)}
           stamp == IF HighestVote THEN Highest(votes) ELSE rec[h][t].stamp
       IN /\ Record(h, t, [is |-> "commit", stamp |-> stamp, at |-> Position(rec[h]) + 1,
                           late |-> Stamps /\ stamp <= promised[h]])
          /\ clock' = [clock EXCEPT ![h] = Max(@, stamp)]
    /\ UNCHANGED <<disk, ceiling, promised, evidence, forgotten, crashes>>

Abort(h, t) ==
    /\ t \in InDoubt(h)
    /\ \E g \in PartsOf(t) : SaidNo(Heard(g, t))
    /\ Record(h, t, [Unknown EXCEPT !.is = "abort"])
    /\ UNCHANGED <<disk, clock, ceiling, promised, evidence, forgotten, crashes>>

(* Only without the guard: the home has waited long enough.                *)
TimeOut(h, t) ==
    /\ ~AbortNeedsNo
    /\ t \in InDoubt(h)
    /\ Record(h, t, [Unknown EXCEPT !.is = "abort"])
    /\ UNCHANGED <<disk, clock, ceiling, promised, evidence, forgotten, crashes>>

Sync(h) ==
    /\ disk[h] # rec[h]
    /\ disk' = [disk EXCEPT ![h] = rec[h]]
    /\ UNCHANGED <<rec, clock, ceiling, promised, evidence, forgotten, crashes>>

(* Time passes, below the ceiling; and the ceiling is raised, durably.     *)
Tick(h) ==
    /\ clock[h] < Ticks
    /\ clock[h] < ceiling[h]
    /\ clock' = [clock EXCEPT ![h] = @ + 1]
    /\ UNCHANGED <<rec, disk, ceiling, promised, evidence, forgotten, crashes>>

Reserve(h) ==
    /\ Stamps /\ ceiling[h] <= clock[h] /\ ceiling[h] < Ceilings
    /\ ceiling' = [ceiling EXCEPT ![h] = Min(clock[h] + 2, Ceilings)]
    /\ UNCHANGED <<rec, disk, clock, promised, evidence, forgotten, crashes>>

(* A watermark: every commit stamped at or below it has been delivered.    *)
(* The outcome of a vote counts once it is durable: only then is it told.  *)
Mark(h) ==
    LET doubts == {disk[h][t].stamp : t \in {t \in Txns : disk[h][t].is = "yes"}}
                  \cup {rec[h][t].stamp : t \in InDoubt(h)}
        now == Min(clock[h], ceiling[h])
    IN IF BelowDoubt /\ doubts # {} THEN Min(now, Lowest(doubts) - 1) ELSE now
Promise(h) ==
    /\ Stamps
    /\ Mark(h) > promised[h]
    /\ promised' = [promised EXCEPT ![h] = Mark(h)]
    /\ UNCHANGED <<rec, disk, clock, ceiling, evidence, forgotten, crashes>>

(* What was not synced is lost, and so is the clock.                       *)
Crash(h) ==
    /\ crashes[h] < Crashes
    /\ crashes' = [crashes EXCEPT ![h] = @ + 1]
    /\ rec' = [rec EXCEPT ![h] = disk[h]]
    /\ LET top == Highest({disk[h][t].stamp : t \in Txns})
       IN clock' = [clock EXCEPT ![h] = IF Ceiling THEN Max(ceiling[h], top) ELSE top]
    /\ forgotten' = IF VotesHaveSets THEN forgotten
                    ELSE [forgotten EXCEPT ![h] = {t \in Txns : disk[h][t].is = "yes"}]
    /\ UNCHANGED <<disk, ceiling, promised, evidence>>

Next ==
    \/ \E t \in Txns : Begin(t)
    \/ \E h \in Homes, t \in Txns : VoteYes(h, t)
    \/ \E h \in Homes, t \in Txns : VoteNo(h, t)
    \/ \E h \in Homes, t \in Txns : Commit(h, t)
    \/ \E h \in Homes, t \in Txns : Abort(h, t)
    \/ \E h \in Homes, t \in Txns : TimeOut(h, t)
    \/ \E h \in Homes : Sync(h)
    \/ \E h \in Homes : Tick(h)
    \/ \E h \in Homes : Reserve(h)
    \/ \E h \in Homes : Promise(h)
    \/ \E h \in Homes : Crash(h)

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold                                                          *)
(***************************************************************************)

(* Committed at one home is aborted or refused at none.                    *)
Atomic ==
    \A t \in Txns, g, h \in Homes :
        rec[g][t].is = "commit" => rec[h][t].is \notin {"abort", "no"}

(* What one home has committed, every other has promised, durably.         *)
NothingForgotten ==
    \A t \in Txns, h \in Homes :
        rec[h][t].is = "commit" => \A g \in PartsOf(t) : SaidYes(disk[g][t])

OneStamp ==
    \A t \in Txns, g, h \in Homes :
        rec[g][t].is = "commit" /\ rec[h][t].is = "commit" => rec[g][t].stamp = rec[h][t].stamp

(* No cycle among committed transactions: t comes before u at home h if u  *)
(* was delivered there after t, or if t read there before u wrote.         *)
Committed(t) == \E h \in Homes : rec[h][t].is = "commit"
PlaceOf(h, t) == IF rec[h][t].is = "commit" THEN rec[h][t].at ELSE 1000
Before(t, u) ==
    \E h \in Homes :
        \/ h \in Reads[t] \cap Writes[u] /\ PlaceOf(h, u) > evidence[t][h]
        \/ h \in Writes[t] \cap Reads[u] /\ PlaceOf(h, t) <= evidence[u][h]
        \/ h \in Writes[t] \cap Writes[u] /\ PlaceOf(h, t) < PlaceOf(h, u)
Serializable ==
    \A t, u \in {t \in Txns : Committed(t)} : t # u => ~(Before(t, u) /\ Before(u, t))

(* Nothing is delivered at or below a promise.                             *)
Watermarks == \A h \in Homes, t \in Txns : ~rec[h][t].late

(* Rule 5: a reader that is current at every home, and has a stamp not     *)
(* below what it saw nor above any watermark, sees a transaction whole.    *)
Seen == {disk[h][t].stamp : <<h, t>> \in {p \in Homes \X Txns : disk[p[1]][p[2]].is = "commit"}}
ReadOnly ==
    (Stamps /\ \A s \in Seen, h \in Homes : s <= promised[h]) =>
        \A t \in Txns, g, h \in Homes :
            g \in Writes[t] /\ h \in Writes[t] /\ disk[g][t].is = "commit" => disk[h][t].is = "commit"
=============================================================================
