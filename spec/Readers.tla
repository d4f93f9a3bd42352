------------------------------ MODULE Readers ------------------------------
(***************************************************************************)
(* Where a transaction that only read may stand: rule 5 of                 *)
(* docs/protocol.md over several homes, with the watermarks that votes     *)
(* hold back (rule 10) and the ceiling of rule 12.                         *)
(*                                                                         *)
(* The readers of one session follow each other.  Each looks at its homes, *)
(* one after the other, at any moments: what it saw there, as of a         *)
(* position and with the promise of that moment, stands still (rule 2), so *)
(* a stream that is late is a reader that looked early.  Every transaction *)
(* writes the one object of each of its homes; logs are durable at once    *)
(* (TwoPhase.tla has them otherwise).                                      *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Homes,
    Parts,      \* the homes that each transaction writes at: <<{1, 2}, {2}>>
    Looks,      \* the homes that each reader of the session looks at
    Top,        \* the highest stamp
    Crashes     \* how often each home crashes

(* Guards: TRUE is Thorp. *)
CONSTANTS
    WithinPromises,     \* a reader stands no higher than any of its homes has promised
    AboveSeen,          \* nor lower than the highest stamp that it saw
    SessionFloor,       \* nor lower than where its session has been
    BelowDoubt,         \* a promise stays below every vote in doubt
    HighestVote,        \* the common stamp is the highest vote
    BelowCeiling        \* what is promised is below the durable ceiling

VARIABLES
    log,        \* the transactions that each home has committed, with their stamps
    vote,       \* what each home votes for each transaction; 0: nothing
    clock,      \* lost in a crash
    ceiling,    \* durable
    sight,      \* what the present reader saw at each home
    ended,      \* the readers that committed: where they stood, and what they saw
    crashes

vars == <<log, vote, clock, ceiling, sight, ended, crashes>>

Txns == DOMAIN Parts
Nothing == [is |-> FALSE, pos |-> 0, mark |-> 0]

Init ==
    /\ log = [h \in Homes |-> <<>>]
    /\ vote = [t \in Txns |-> [h \in Homes |-> 0]]
    /\ clock = [h \in Homes |-> 0]
    /\ ceiling = [h \in Homes |-> 0]
    /\ sight = [h \in Homes |-> Nothing]
    /\ ended = <<>>
    /\ crashes = [h \in Homes |-> 0]

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
Highest(S) == CHOOSE n \in S : \A k \in S : k <= n
Lowest(S) == CHOOSE n \in S : \A k \in S : n <= k

HasCommitted(h, t) == \E i \in 1..Len(log[h]) : log[h][i].txn = t
InDoubt(h) == {t \in Txns : vote[t][h] > 0 /\ ~HasCommitted(h, t)}
Contained(h, n) == Highest({0} \cup {log[h][i].stamp : i \in 1..n})

(***************************************************************************)
(* The homes                                                               *)
(***************************************************************************)
(* With one home, the vote is the commit.                                  *)
Vote(h, t) ==
    /\ h \in Parts[t] /\ vote[t][h] = 0
    /\ clock[h] < ceiling[h]
    /\ vote' = [vote EXCEPT ![t][h] = clock[h] + 1]
    /\ clock' = [clock EXCEPT ![h] = @ + 1]
    /\ UNCHANGED <<log, ceiling, sight, ended, crashes>>

Commit(h, t) ==
    /\ t \in InDoubt(h)
    /\ \A g \in Parts[t] : vote[t][g] > 0
    /\ LET votes == {vote[t][g] : g \in Parts[t]}
           stamp == IF HighestVote THEN Highest(votes) ELSE vote[t][h]
       IN /\ log' = [log EXCEPT ![h] = Append(@, [txn |-> t, stamp |-> stamp])]
          /\ clock' = [clock EXCEPT ![h] = Max(@, stamp)]
    /\ UNCHANGED <<vote, ceiling, sight, ended, crashes>>

(* Time passes; or a home that is asked to promise more moves its clock.   *)
(* It may move before the ceiling does: what is told must not.             *)
Tick(h) ==
    /\ clock[h] < Top
    /\ clock' = [clock EXCEPT ![h] = @ + 1]
    /\ UNCHANGED <<log, vote, ceiling, sight, ended, crashes>>

Reserve(h) ==
    /\ ceiling[h] < Top
    /\ ceiling' = [ceiling EXCEPT ![h] = Min(Max(clock[h], ceiling[h]) + 1, Top)]
    /\ UNCHANGED <<log, vote, clock, sight, ended, crashes>>

(* The clock is lost, and begins anew above the ceiling and all stamps.    *)
Crash(h) ==
    /\ crashes[h] < Crashes
    /\ crashes' = [crashes EXCEPT ![h] = @ + 1]
    /\ LET votes == {vote[t][h] : t \in Txns}
       IN clock' = [clock EXCEPT ![h] =
                    Highest({ceiling[h], Contained(h, Len(log[h]))} \cup votes)]
    /\ UNCHANGED <<log, vote, ceiling, sight, ended>>

(* What a home promises to whoever hears of it now.                        *)
Mark(h) ==
    LET now == IF BelowCeiling THEN Min(clock[h], ceiling[h]) ELSE clock[h]
        doubts == {vote[t][h] : t \in InDoubt(h)}
    IN IF BelowDoubt /\ doubts # {} THEN Min(now, Lowest(doubts) - 1) ELSE now

(***************************************************************************)
(* The session                                                             *)
(***************************************************************************)
Present == Len(ended) + 1

Look(h) ==
    /\ Present \in DOMAIN Looks
    /\ h \in Looks[Present] /\ ~sight[h].is
    /\ sight' = [sight EXCEPT ![h] = [is |-> TRUE, pos |-> Len(log[h]), mark |-> Mark(h)]]
    /\ UNCHANGED <<log, vote, clock, ceiling, ended, crashes>>

Floor == IF SessionFloor THEN Highest({0} \cup {ended[i].stamp : i \in DOMAIN ended}) ELSE 0
Saw == {Contained(h, sight[h].pos) : h \in Looks[Present]}

Stand ==
    /\ Present \in DOMAIN Looks
    /\ \A h \in Looks[Present] : sight[h].is
    /\ LET stamp == IF AboveSeen THEN Highest({Floor} \cup Saw) ELSE Max(Floor, Lowest(Saw))
       IN /\ WithinPromises => \A h \in Looks[Present] : stamp <= sight[h].mark
          /\ ended' = Append(ended, [stamp |-> stamp, pos |-> [h \in Homes |-> sight[h].pos]])
    /\ sight' = [h \in Homes |-> Nothing]
    /\ UNCHANGED <<log, vote, clock, ceiling, crashes>>

(* It is run again: its session has seen nothing by it.                    *)
Again ==
    /\ \E h \in Homes : sight[h].is
    /\ sight' = [h \in Homes |-> Nothing]
    /\ UNCHANGED <<log, vote, clock, ceiling, ended, crashes>>

Next ==
    \/ \E h \in Homes, t \in Txns : Vote(h, t)
    \/ \E h \in Homes, t \in Txns : Commit(h, t)
    \/ \E h \in Homes : Tick(h)
    \/ \E h \in Homes : Reserve(h)
    \/ \E h \in Homes : Crash(h)
    \/ \E h \in Homes : Look(h)
    \/ Stand
    \/ Again

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold                                                          *)
(***************************************************************************)
Sees(i, h, t) ==
    \E n \in 1..ended[i].pos[h] : log[h][n].txn = t

(* A reader's place among the writers: it saw all that is stamped at or    *)
(* below it, and nothing that is above, now and ever after.                *)
Place ==
    \A i \in DOMAIN ended, h \in Homes : h \in Looks[i] =>
        \A n \in 1..Len(log[h]) : (log[h][n].stamp <= ended[i].stamp) = (n <= ended[i].pos[h])

(* A transaction over several homes is seen at all of them or at none.     *)
Whole ==
    \A i \in DOMAIN ended, t \in Txns, g, h \in Homes :
        g \in Looks[i] \cap Parts[t] /\ h \in Looks[i] \cap Parts[t]
            => Sees(i, g, t) = Sees(i, h, t)

(* What a program saw at one home it sees at the next.                     *)
NeverBack ==
    \A i, j \in DOMAIN ended, t \in Txns, g, h \in Homes :
        i < j /\ g \in Looks[i] \cap Parts[t] /\ h \in Looks[j] \cap Parts[t] /\ Sees(i, g, t)
            => Sees(j, h, t)
=============================================================================
