------------------------------ MODULE Outcome ------------------------------
(***************************************************************************)
(* Exactly once, and nothing forgotten: rules 1, 11 and 12 of              *)
(* docs/protocol.md for a member's commits and a home that crashes.        *)
(*                                                                         *)
(* A member has jobs, each to be done once.  It tries one job at a time,   *)
(* each try under the next sequence of its ids.  Requests are lost,        *)
(* doubled and late: one that was sent may arrive at any time from then on *)
(* or never.  A lost answer is re-asked.                                   *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Jobs,       \* how many, one after the other
    Tries,      \* how many ids the member uses in all
    Window,     \* how many outcomes the home remembers
    Crashes     \* how often the home crashes

(* Guards: TRUE is Thorp. *)
CONSTANTS
    DurableFirst,       \* an outcome is told only when it is durable
    RecordsUnknown,     \* asking for an unknown id records its refusal
    RecordsRefusals,    \* every refusal but busy ends the id
    NothingBelowWindow  \* what is below the window is not executed

VARIABLES
    log,        \* the home's records, one for each outcome
    durable,    \* how many of them survive a crash
    sent,       \* for each id that was ever sent, its job
    job,        \* the job the member is at
    waits,      \* the id that it waits for, or 0
    told,       \* what the member was told: ids
    crashes

vars == <<log, durable, sent, job, waits, told, crashes>>

Init ==
    /\ log = <<>>
    /\ durable = 0
    /\ sent = <<>>
    /\ job = 1
    /\ waits = 0
    /\ told = [committed |-> {}, refused |-> {}, forgotten |-> {}]
    /\ crashes = 0

Max(S) == CHOOSE n \in S : \A k \in S : k <= n

(* The window is over the highest ids heard of: an outcome that is no more *)
(* remembered lies below it.                                               *)
Heard == Max({0} \cup {log[i].id : i \in 1..Len(log)})
Below(id) == id + Window <= Heard
Places(id) == {i \in 1..Len(log) : log[i].id = id}
Remembered(id) == Places(id) # {} /\ ~Below(id)
Is(id, is) == \E i \in Places(id) : log[i].is = is
Tellable(id, is) ==
    \E i \in Places(id) : log[i].is = is /\ (DurableFirst => i <= durable)

Record(id, is) == log' = Append(log, [id |-> id, is |-> is, job |-> sent[id]])
Unchecked(id) == ~Remembered(id) /\ (NothingBelowWindow => ~Below(id))

(***************************************************************************)
(* The member                                                              *)
(***************************************************************************)
Send ==
    /\ waits = 0 /\ job <= Jobs /\ Len(sent) < Tries
    /\ sent' = Append(sent, job)
    /\ waits' = Len(sent) + 1
    /\ UNCHANGED <<log, durable, job, told, crashes>>

(* The answer arrives: a job that is refused is run again as a new try.    *)
Committed ==
    /\ waits # 0 /\ Remembered(waits) /\ Tellable(waits, "committed")
    /\ told' = [told EXCEPT !.committed = @ \cup {waits}]
    /\ waits' = 0
    /\ job' = job + 1
    /\ UNCHANGED <<log, durable, sent, crashes>>

Refused ==
    /\ waits # 0 /\ Remembered(waits) /\ Tellable(waits, "refused")
    /\ told' = [told EXCEPT !.refused = @ \cup {waits}]
    /\ waits' = 0
    /\ UNCHANGED <<log, durable, sent, job, crashes>>

(* It asks late for one that it left: neither committed nor refused, for   *)
(* it lies below what is remembered, and durably so.                       *)
Forgotten(id) ==
    /\ \E i \in 1..durable : id + Window <= log[i].id
    /\ id \notin told.committed \cup told.refused \cup told.forgotten
    /\ id # waits
    /\ told' = [told EXCEPT !.forgotten = @ \cup {id}]
    /\ UNCHANGED <<log, durable, sent, job, waits, crashes>>

(* The member gives up waiting and does something else, as a program may.  *)
Leave ==
    /\ waits # 0
    /\ waits' = 0
    /\ job' = job + 1
    /\ UNCHANGED <<log, durable, sent, told, crashes>>

(***************************************************************************)
(* The home                                                                *)
(***************************************************************************)

(* A request arrives, for the first time or again. *)
Accept(id) ==
    /\ Unchecked(id)
    /\ Record(id, "committed")
    /\ UNCHANGED <<durable, sent, job, waits, told, crashes>>

Refuse(id) ==
    /\ Unchecked(id)
    /\ IF RecordsRefusals
       THEN /\ Record(id, "refused")
            /\ UNCHANGED <<waits, told>>
       ELSE /\ id = waits
            /\ told' = [told EXCEPT !.refused = @ \cup {id}]
            /\ waits' = 0
            /\ UNCHANGED log
    /\ UNCHANGED <<durable, sent, job, crashes>>

(* The member asks what became of an id that the home has not heard of.    *)
Ask ==
    /\ waits # 0 /\ Unchecked(waits)
    /\ IF RecordsUnknown
       THEN /\ Record(waits, "refused")
            /\ UNCHANGED <<waits, told>>
       ELSE /\ told' = [told EXCEPT !.refused = @ \cup {waits}]
            /\ waits' = 0
            /\ UNCHANGED log
    /\ UNCHANGED <<durable, sent, job, crashes>>

Sync ==
    /\ durable < Len(log)
    /\ durable' = Len(log)
    /\ UNCHANGED <<log, sent, job, waits, told, crashes>>

Restart ==
    /\ crashes < Crashes
    /\ crashes' = crashes + 1
    /\ log' = SubSeq(log, 1, durable)
    /\ UNCHANGED <<durable, sent, job, waits, told>>

Next ==
    \/ Send
    \/ Committed
    \/ Refused
    \/ \E id \in DOMAIN sent : Forgotten(id)
    \/ Leave
    \/ \E id \in DOMAIN sent : Accept(id)
    \/ \E id \in DOMAIN sent : Refuse(id)
    \/ Ask
    \/ Sync
    \/ Restart

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold                                                          *)
(***************************************************************************)

(* No id is executed twice, and no job under two ids. *)
ExactlyOnce ==
    \A i, j \in 1..Len(log) :
        log[i].is = "committed" /\ log[j].is = "committed" /\ log[i].job = log[j].job => i = j

(* What was told is so, for ever. *)
NothingForgotten ==
    /\ \A id \in told.committed : Is(id, "committed")
    /\ \A id \in told.refused : ~Is(id, "committed")
=============================================================================
