----------------------------- MODULE WriteLease ----------------------------
(***************************************************************************)
(* Hard reads, and the writers that the home asks for them: rules C3, C4   *)
(* and C10 of docs/protocol.md.  Recalls of their leases: rule C1.         *)
(*                                                                         *)
(* A home, sites below it, a writer with a log, and a reader; one segment. *)
(* The writer is below a site, or directly below the home, and may turn at *)
(* any time.  It calls for a write lease through its parent to the home,   *)
(* and repeats the call.  The home records the edge on which a call came;  *)
(* a site records the writer.  A hard read is a pull at the home: the home *)
(* sends Get along the records, and waits for the numbers that come back.  *)
(*                                                                         *)
(* The home may recall its grants.  A Recall goes along the records, too.  *)
(* The writer gives its lease back, and then its site gives back its own.  *)
(*                                                                         *)
(* What goes up arrives at once; what comes down takes its time.  A later  *)
(* arrival above would only lengthen records, or keep a pull waiting.      *)
(*                                                                         *)
(* Time is in ticks.  A record or a lease is the number of ticks that      *)
(* remain.  The home and the sites have one clock.  The writer's clock     *)
(* lags behind it by at most Skew ticks, and may catch up again.           *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Sites,          \* numbers from 1; a restarted site is the next one
    Direct,         \* whether the writer may turn to the home itself
    Updates,        \* how many updates the writer answers
    Sessions,       \* the reader's sessions
    Lengths,        \* of a lease: at first, and after each restart of the home
    Skew,           \* how far the writer's clock may lag
    Margin,         \* how much earlier a lease ends by the writer's clock
    Breaks,         \* the sites whose edge to the home may break
    Restarts,       \* the sites that may restart
    Recalls         \* whether the home may recall leases

(* A site's record of the writer runs from when the site passes the answer *)
(* on: "passing" is Thorp.  "answering": from when the home answered.      *)
(* "first": a refresh leaves a record as it is.                            *)
CONSTANT SiteCounts

(* Guards: TRUE is Thorp; each one FALSE is a weaker protocol. *)
CONSTANTS
    LogsFirst,      \* the home logs the length before it grants its first lease
    LogsLonger,     \* it logs again before it grants a longer one
    WaitsAfter,     \* after a restart it answers no pull for that time
    WaitsLogged,    \* that time is the logged length, not the configured one
    ThroughHome,    \* a site renews no lease by itself
    CountsSending,  \* the writer's lease counts from the call, not from the answer
    CountsOwnCall,  \* it counts from the call that is answered, not from the last
    EndOfEdge,      \* the end of an edge ends no record
    NewNode,        \* a restarted site is a new node
    AsksAbsent,     \* a site also waits for a recorded child without an edge
    InOrder,        \* on an edge, a Get overtakes no grant
    MatchesGet,     \* an answer counts only for the Get that it answers
    WaitsNumbers,   \* a pull waits until the named numbers are executed
    AsksAnew,       \* while a pull waits, a grant is followed by a Get
    JoinsUnsent,    \* a session joins only a pull whose Get has not left
    BackWhenSettled,     \* the writer gives back when its covered answers are executed
    BackAfterAnswer,     \* ... and no call of its own is unanswered
    SiteBackWaits,       \* a site gives back when it has no record of the writer
    SiteBackAfterAnswer  \* ... and no call that went through it is unanswered

(* The home's edges: one to each site, and one to the writer.              *)
Own == Cardinality(Sites) + 1
Edges == Sites \cup (IF Direct THEN {Own} ELSE {})

VARIABLES
    home,       \* its records, its log and its pull
    site,       \* what each site has
    writer,     \* its parent, its lease and its log
    whole,      \* which of the home's edges stand
    down,       \* what is on its way down each of them
    reader,     \* the sessions
    missed      \* whether a read missed what it needs

vars == <<home, site, writer, whole, down, reader, missed>>

Init ==
    /\ home = [records |-> [x \in Edges |-> 0],
               logged |-> 0,        \* durable: the longest lease
               done |-> 0,          \* durable: the last number executed
               waits |-> 0,         \* for how long it answers no pull
               pulls |-> FALSE,     \* a pull waits here
               asked |-> {},        \* the edges that owe it an answer
               named |-> [x \in Edges |-> 0],    \* the numbers that it waits for
               restarts |-> 0]
    /\ site = [s \in Sites |-> [alive |-> TRUE, record |-> 0,
                                holds |-> FALSE,    \* a Get waits for the writer
                                recalled |-> FALSE]]
    /\ writer = [via |-> 1,         \* the edge that it is behind
                 lease |-> 0,
                 lag |-> 0,
                 recent |-> 0,      \* a lease that counts from the last call (weaker)
                 last |-> 0,        \* durable: the last number that it answered
                 covered |-> 0,     \* the last under a lease that has not ended since
                 recalled |-> FALSE,    \* its lease covers no answer any more
                 left |-> 0]        \* of a lease that was given back too early (weaker)
    /\ whole = [x \in Edges |-> x \in Sites]
    /\ down = [x \in Edges |-> <<>>]
    /\ reader = [r \in Sessions |-> [is |-> "idle", needs |-> 0]]
    /\ missed = FALSE

Max(a, b) == IF a > b THEN a ELSE b
Less(a, b) == IF a > b THEN a - b ELSE 0

Length == Lengths[home.restarts + 1]
Full == Less(Length, Margin)
Believes == writer.lease > 0

(* A number that is executed is of no concern any more.                    *)
Open(n, done) == IF n > done THEN n ELSE 0

OnlyGrants(queue) == SelectSeq(queue, LAMBDA e : e.type = "Grant")
NoGrants(queue) == SelectSeq(queue, LAMBDA e : e.type # "Grant")
NoGets(queue) == SelectSeq(queue, LAMBDA e : e.type # "Get")
AGet == [type |-> "Get", left |-> 0]
ARecall == [type |-> "Recall", left |-> 0]

(* A Get whose answer nobody awaits is left out at once.                   *)
Gets(queues, asked) ==
    [x \in Edges |-> IF MatchesGet /\ x \notin asked THEN NoGets(queues[x]) ELSE queues[x]]
Holding(sites, asked) ==
    [s \in Sites |->
        IF MatchesGet /\ s \notin asked THEN [sites[s] EXCEPT !.holds = FALSE] ELSE sites[s]]

(* An edge has answered.                                                   *)
Answered(h, x, n) == [h EXCEPT !.asked = @ \ {x}, !.named[x] = Open(n, h.done)]

(***************************************************************************)
(* Time                                                                    *)
(***************************************************************************)

(* An answer that comes when its lease is over brings nothing.             *)
Aged(queue) ==
    IF ~CountsSending \/ ~CountsOwnCall THEN queue
    ELSE LET older == [i \in 1..Len(queue) |-> [queue[i] EXCEPT !.left = Less(@, 1)]]
         IN SelectSeq(older, LAMBDA e : e.type # "Grant" \/ e.left > 0)

(* The parents' clock goes on by h, the writer's by w.  When a record has  *)
(* ended, nobody waits for its child's answer, nor for what that named.    *)
(* A lease that has ended covers nothing.  One that was given back has not *)
(* ended by that: what it covered is promised until its time is over.      *)
Passes(h, w) ==
    LET records == [x \in Edges |-> Less(home.records[x], h)]
        ended == {s \in Sites : site[s].holds /\ site[s].record <= h}
        asked == {x \in home.asked \ ended : records[x] > 0}
        sites == [s \in Sites |-> [site[s] EXCEPT !.record = Less(@, h), !.holds = @ /\ s \notin ended]]
        lease == Less(writer.lease, w)
        left == Less(writer.left, w)
        over == lease = 0 /\ left = 0
    IN /\ home' = [home EXCEPT !.records = records, !.asked = asked, !.waits = Less(@, h),
                               !.named = [x \in Edges |-> IF records[x] > 0 THEN @[x] ELSE 0]]
       /\ site' = Holding(sites, asked)
       /\ down' = Gets(IF w = 1 THEN [x \in Edges |-> Aged(down[x])] ELSE down, asked)
       /\ writer' = [writer EXCEPT !.lease = lease, !.left = left, !.lag = @ + h - w, !.recent = Less(@, w),
                                   !.covered = IF over THEN 0 ELSE @]
       /\ reader' = [r \in Sessions |-> IF over THEN [reader[r] EXCEPT !.needs = 0] ELSE reader[r]]
       /\ UNCHANGED <<whole, missed>>

Tick ==
    /\ writer.lag <= Skew
    /\ Passes(1, 1)

Lag ==
    /\ writer.lag < Skew
    /\ Passes(1, 0)

CatchUp ==
    /\ writer.lag > 0
    /\ Passes(0, 1)

(***************************************************************************)
(* The writer                                                              *)
(***************************************************************************)

(* An update is durable in the log, and the program has its answer: with   *)
(* privilege if the writer believes in its lease and it is not recalled,   *)
(* else without.                                                           *)
Answer ==
    /\ writer.last < Updates
    /\ writer' = [writer EXCEPT !.last = @ + 1,
                                !.covered = IF Believes /\ ~writer.recalled THEN writer.last + 1 ELSE @]
    /\ UNCHANGED <<home, site, whole, down, reader, missed>>

(* The updates go up in order, each at any time, and are executed.         *)
Execute ==
    /\ home.done < writer.last /\ whole[writer.via]
    /\ home' = [home EXCEPT !.done = @ + 1,
                               !.named = [x \in Edges |-> Open(@[x], home.done + 1)]]
    /\ writer' = [writer EXCEPT !.covered = Open(@, home.done + 1)]
    /\ reader' = [r \in Sessions |-> [reader[r] EXCEPT !.needs = Open(@, home.done + 1)]]
    /\ UNCHANGED <<site, whole, down, missed>>

(* It calls for a lease, and the home answers.  A pull that waits asks     *)
(* anew, behind the answer.                                                *)
MustLog == LogsFirst /\ (home.logged = 0 \/ LogsLonger)
Call ==
    /\ whole[writer.via] /\ OnlyGrants(down[writer.via]) = <<>>
    /\ LET x == writer.via
           anew == AsksAnew /\ home.pulls
           before == IF anew /\ MatchesGet THEN NoGets(down[x]) ELSE down[x]
           grant == <<[type |-> "Grant", left |-> Full]>>
       IN /\ home' = [home EXCEPT !.records[x] = Length,
                                  !.logged = IF MustLog THEN Max(@, Length) ELSE @,
                                  !.asked = IF anew THEN @ \cup {x} ELSE @]
          /\ down' = [down EXCEPT ![x] = before \o grant \o (IF anew THEN <<AGet>> ELSE <<>>)]
          /\ site' = [s \in Sites |->
                IF s = x /\ anew /\ MatchesGet THEN [site[s] EXCEPT !.holds = FALSE] ELSE site[s]]
    /\ writer' = [writer EXCEPT !.recent = IF CountsOwnCall THEN 0 ELSE Full]
    /\ UNCHANGED <<whole, reader, missed>>

(* A call that is lost, or late.                                           *)
CallLost ==
    /\ ~CountsOwnCall
    /\ writer' = [writer EXCEPT !.recent = Full]
    /\ UNCHANGED <<home, site, whole, down, reader, missed>>

(* The site records the writer and passes the answer on.                   *)
Recorded(s) ==
    IF SiteCounts = "answering" THEN Max(site[s].record, home.records[s])
    ELSE IF SiteCounts = "first" /\ site[s].record > 0 THEN site[s].record
    ELSE Length

Granted(x) ==
    /\ down[x] # <<>> /\ Head(down[x]).type = "Grant"
    /\ down' = [down EXCEPT ![x] = Tail(@)]
    /\ writer' = [writer EXCEPT !.lease = Max(@, IF CountsOwnCall THEN Head(down[x]).left ELSE writer.recent),
                                !.recalled = FALSE]
    /\ site' = [s \in Sites |-> IF s = x THEN [site[s] EXCEPT !.record = Recorded(s)] ELSE site[s]]
    /\ UNCHANGED <<home, whole, reader, missed>>

(* A site that may be cut off renews what it has a record of.              *)
Renew(s) ==
    /\ ~ThroughHome
    /\ writer.via = s /\ site[s].alive /\ site[s].record > 0
    /\ site' = [site EXCEPT ![s].record = Length]
    /\ writer' = [writer EXCEPT !.lease = Full]
    /\ UNCHANGED <<home, whole, down, reader, missed>>

(* It turns to another parent.  An answer on the old way does not reach it *)
(* any more.  It answers a Get that waits for it at the new parent.        *)
Turn(x) ==
    /\ x # writer.via
    /\ x \in Sites => site[x].alive
    /\ LET old == writer.via
           waited == x \in Sites /\ site[x].holds
           forgotten == ~EndOfEdge /\ old = Own
           after == IF waited THEN Answered(home, x, writer.last) ELSE home
       IN /\ writer' = [writer EXCEPT !.via = x]
          /\ whole' = [e \in Edges |-> IF e = Own THEN x = Own ELSE whole[e]]
          /\ down' = [e \in Edges |->
                IF e = old THEN IF old = Own THEN <<>> ELSE NoGrants(down[e])
                ELSE IF e = x /\ x = Own /\ x \in home.asked THEN <<AGet>>
                ELSE down[e]]
          /\ site' = [s \in Sites |->
                [site[s] EXCEPT !.holds = @ /\ s # x,
                                !.record = IF s = old /\ ~EndOfEdge THEN 0 ELSE @]]
          /\ home' = IF forgotten
                     THEN [after EXCEPT !.records[Own] = 0, !.asked = @ \ {Own}]
                     ELSE after
    /\ UNCHANGED <<reader, missed>>

(***************************************************************************)
(* Recalls                                                                 *)
(***************************************************************************)

(* The home recalls what it has granted on an edge, behind all that it has *)
(* sent.  Thorp's home sends it once, and again when the edge is mended: a *)
(* site whose stream has ended forgets it.  This one sends it whenever it  *)
(* likes, and also grants anew.                                            *)
Recall(x) ==
    /\ Recalls
    /\ home.records[x] > 0 /\ whole[x]
    /\ SelectSeq(down[x], LAMBDA e : e.type = "Recall") = <<>>
    /\ down' = [down EXCEPT ![x] = Append(@, ARecall)]
    /\ UNCHANGED <<home, site, writer, whole, reader, missed>>

(* A site passes it on, if it has a record of the writer and its edge.     *)
(* From here on, the writer's lease covers no answer, until it is granted  *)
(* one again.                                                              *)
Recalled(x) ==
    /\ down[x] # <<>> /\ Head(down[x]).type = "Recall"
    /\ down' = [down EXCEPT ![x] = Tail(@)]
    /\ LET passed == writer.via = x /\ (x = Own \/ site[x].record > 0)
       IN writer' = [writer EXCEPT !.recalled = @ \/ passed]
    /\ site' = [s \in Sites |-> IF s = x THEN [site[s] EXCEPT !.recalled = TRUE] ELSE site[s]]
    /\ UNCHANGED <<home, whole, reader, missed>>

(* The home forgets what it has granted on an edge, and asks it no more.   *)
Forgets(x) ==
    LET asked == home.asked \ {x}
    IN /\ home' = [home EXCEPT !.records[x] = 0, !.asked = asked, !.named[x] = 0]
       /\ down' = Gets(down, asked)

(* The writer gives back to its parent, and believes in no lease.          *)
GiveBack ==
    /\ writer.recalled
    /\ BackWhenSettled => writer.covered = 0
    /\ BackAfterAnswer => OnlyGrants(down[writer.via]) = <<>>
    /\ writer' = [writer EXCEPT !.lease = 0, !.recalled = FALSE,
                                !.left = IF writer.covered > 0 THEN Max(@, writer.lease) ELSE 0]
    /\ IF writer.via = Own
       THEN /\ whole[Own]
            /\ Forgets(Own)
            /\ UNCHANGED site
       ELSE /\ site[writer.via].alive
            /\ site' = [site EXCEPT ![writer.via].record = 0]
            /\ UNCHANGED <<home, down>>
    /\ UNCHANGED <<whole, reader, missed>>

(* A site gives back to the home.                                          *)
SiteBack(s) ==
    /\ site[s].recalled /\ whole[s]
    /\ SiteBackWaits => site[s].record = 0
    /\ SiteBackAfterAnswer => OnlyGrants(down[s]) = <<>>
    /\ Forgets(s)
    /\ site' = [site EXCEPT ![s].recalled = FALSE, ![s].holds = FALSE]
    /\ UNCHANGED <<writer, whole, reader, missed>>

(***************************************************************************)
(* The reader                                                              *)
(***************************************************************************)

(* A session begins a hard read.  It needs what the writer has answered    *)
(* with privilege.                                                         *)
Read(r) ==
    /\ reader[r].is = "idle"
    /\ reader' = [reader EXCEPT ![r] = [is |-> IF home.pulls /\ ~JoinsUnsent THEN "pulls" ELSE "waits",
                                        needs |-> writer.covered]]
    /\ UNCHANGED <<home, site, writer, whole, down, missed>>

(* The home sends Get to each child with a record, or once that has an     *)
(* edge again.  All sessions that wait are in one pull.                    *)
Pull ==
    /\ ~home.pulls /\ \E r \in Sessions : reader[r].is = "waits"
    /\ reader' = [r \in Sessions |-> IF reader[r].is = "waits" THEN [reader[r] EXCEPT !.is = "pulls"] ELSE reader[r]]
    /\ LET asked == {x \in Edges : home.records[x] > 0}
       IN /\ home' = [home EXCEPT !.pulls = TRUE, !.asked = asked]
          /\ down' = [x \in Edges |-> IF x \in asked /\ whole[x] THEN Append(down[x], AGet) ELSE down[x]]
    /\ UNCHANGED <<site, writer, whole, missed>>

(* The writer answers a Get with the last number in its log, a site with   *)
(* what the writer answered.                                               *)
Get(x) ==
    /\ \E i \in 1..Len(down[x]) :
        /\ down[x][i].type = "Get" /\ (InOrder => i = 1)
        /\ down' = [down EXCEPT ![x] = SubSeq(@, 1, i - 1) \o SubSeq(@, i + 1, Len(@))]
    /\ LET recorded == x = Own \/ site[x].record > 0
           holds == recorded /\ writer.via # x /\ AsksAbsent
           number == IF recorded /\ writer.via = x THEN writer.last ELSE 0
       IN /\ home' = IF holds THEN home ELSE Answered(home, x, number)
          /\ site' = [s \in Sites |-> IF s = x THEN [site[s] EXCEPT !.holds = @ \/ holds] ELSE site[s]]
    /\ UNCHANGED <<writer, whole, reader, missed>>

(* The pull is answered.                                                   *)
Pulled ==
    /\ home.pulls /\ home.asked = {} /\ home.waits = 0
    /\ WaitsNumbers => \A x \in Edges : home.named[x] = 0
    /\ missed' = (missed \/ \E r \in Sessions : reader[r].is = "pulls" /\ reader[r].needs > home.done)
    /\ reader' = [r \in Sessions |-> IF reader[r].is = "pulls" THEN [is |-> "idle", needs |-> 0] ELSE reader[r]]
    /\ home' = [home EXCEPT !.pulls = FALSE, !.named = [x \in Edges |-> 0]]
    /\ UNCHANGED <<site, writer, whole, down>>

(***************************************************************************)
(* Edges end, and nodes restart                                            *)
(***************************************************************************)
Ends(s) ==
    /\ whole' = [whole EXCEPT ![s] = FALSE]
    /\ down' = [down EXCEPT ![s] = <<>>]
    /\ home' = IF EndOfEdge THEN home ELSE [home EXCEPT !.records[s] = 0, !.asked = @ \ {s}]
    /\ UNCHANGED <<writer, reader, missed>>

Break(s) ==
    /\ s \in Breaks /\ whole[s]
    /\ Ends(s)
    /\ site' = [site EXCEPT ![s].holds = FALSE, ![s].recalled = FALSE]

(* A new edge of the same node: the Get is repeated.                       *)
Mend(x) ==
    /\ ~whole[x]
    /\ IF x = Own THEN writer.via = Own ELSE site[x].alive
    /\ whole' = [whole EXCEPT ![x] = TRUE]
    /\ down' = [down EXCEPT ![x] = IF x \in home.asked THEN <<AGet>> ELSE <<>>]
    /\ UNCHANGED <<home, site, writer, reader, missed>>

SiteRestarts(s) ==
    /\ s \in Restarts /\ site[s].alive
    /\ Ends(s)
    /\ site' = [site EXCEPT ![s] = [alive |-> ~NewNode, record |-> 0, holds |-> FALSE, recalled |-> FALSE]]

(* The reader repeats its pull.                                            *)
HomeRestarts ==
    /\ home.restarts + 1 < Len(Lengths)
    /\ LET wait == IF WaitsLogged THEN home.logged ELSE Lengths[home.restarts + 2]
       IN home' = [home EXCEPT !.records = [x \in Edges |-> 0], !.pulls = FALSE,
                               !.asked = {}, !.named = [x \in Edges |-> 0],
                               !.waits = IF WaitsAfter /\ home.logged > 0 THEN wait ELSE 0,
                               !.restarts = @ + 1]
    /\ whole' = [x \in Edges |-> FALSE]
    /\ down' = [x \in Edges |-> <<>>]
    /\ site' = [s \in Sites |-> [site[s] EXCEPT !.holds = FALSE, !.recalled = FALSE]]
    /\ reader' = [r \in Sessions |-> IF reader[r].is = "pulls" THEN [reader[r] EXCEPT !.is = "waits"] ELSE reader[r]]
    /\ UNCHANGED <<writer, missed>>

Next ==
    \/ Tick
    \/ Lag
    \/ CatchUp
    \/ Answer
    \/ Execute
    \/ Call
    \/ CallLost
    \/ \E x \in Edges : Granted(x)
    \/ \E s \in Sites : Renew(s)
    \/ \E x \in Edges : Turn(x)
    \/ \E x \in Edges : Recall(x)
    \/ \E x \in Edges : Recalled(x)
    \/ GiveBack
    \/ \E s \in Sites : SiteBack(s)
    \/ \E r \in Sessions : Read(r)
    \/ Pull
    \/ \E x \in Edges : Get(x)
    \/ Pulled
    \/ \E s \in Sites : Break(s)
    \/ \E x \in Edges : Mend(x)
    \/ \E s \in Sites : SiteRestarts(s)
    \/ HomeRestarts

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold                                                          *)
(***************************************************************************)

(* Rules C3 and C10: a pull brings what the writer had answered with       *)
(* privilege before the read began, unless the writer's lease has ended by *)
(* the writer's clock since that answer.                                   *)
Seen == ~missed

(* Rule C4: while the writer believes, records lead from the home to it,   *)
(* or the home answers no pull.  A record of a dead site is waited for.    *)
Known ==
    Believes =>
        \/ home.waits > 0
        \/ \E x \in Edges :
            home.records[x] > 0 /\ (x = Own \/ ~site[x].alive \/ site[x].record > 0)
=============================================================================
