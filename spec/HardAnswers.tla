---------------------------- MODULE HardAnswers ----------------------------
(***************************************************************************)
(* Answers that wait for readers with hard bounds: rules C2 and C4 of      *)
(* docs/protocol.md.                                                       *)
(*                                                                         *)
(* A home, sites below it, a writer, and a reader with a read lease; one   *)
(* segment, whose value counts its commits.  The reader is below a site,   *)
(* or directly below the home, and may turn at any time.  It calls for its *)
(* lease through its parent to the home.  The home records the child that  *)
(* the call came from; a site records the reader.  The home answers a      *)
(* commit when each child with a record has seen it.                       *)
(*                                                                         *)
(* Of the writer only matters which commits are answered to its program:   *)
(* by the step, or, if Withheld came before that, by the outcome that it   *)
(* asks for.  One commit may be over two homes.                            *)
(*                                                                         *)
(* What goes up arrives at once; what comes down takes its time.  A later  *)
(* arrival above would only lengthen records, or keep an answer back.      *)
(*                                                                         *)
(* Time is in ticks.  A record or a lease is the number of ticks that      *)
(* remain.  The home and the sites have one clock.  The reader's clock     *)
(* lags behind it by at most Skew ticks, and may catch up again.           *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Sites,          \* numbers from 1; a restarted site is the next one
    Direct,         \* whether the reader may turn to the home itself
    Commits,        \* how many there are
    Votes,          \* whether one of them may be over two homes
    Mods,           \* how many answered commits the reader may miss
    Lengths,        \* of a lease: at first, and after each restart of the home
    Skew,           \* how far the reader's clock may lag
    Margin,         \* how much earlier a lease ends by the reader's clock
    GivesBack,      \* whether the reader may give its lease back
    Elsewhere,      \* whether another segment changes, which others below a site read
    Breaks,         \* the sites whose edge to the home may break
    Restarts        \* the sites that may restart

(* SeenWanted is repeated by a new edge for all that a child has not seen: *)
(* "owed" is Thorp.  "kept": not for what is answered because the child    *)
(* may miss it.  "nothing": it is not repeated.                            *)
CONSTANT Repeats

(* Guards: TRUE is Thorp; each one FALSE is a weaker protocol. *)
CONSTANTS
    AwaitsSeen,         \* an answer waits until the children have seen the commit
    OutcomeWaits,       \* so does the answer to a question by another edge
    AgainWaits,         \* and the answer to an update or a decision that comes again
    SeenAfterView,      \* a reader sends Seen when it shows the commit
    SiteAsksChildren,   \* a site sends Seen when the reader that it has recorded did
    MissedUntilSeen,    \* a commit counts as missed until it is seen, not until it is sent
    GrantWhenStands,    \* a grant counts only for a reader that stands where its parent does
    InOrder,            \* on an edge, a grant overtakes no step
    BackAnswered,       \* a reader gives no lease back while a call is not answered
    CountsSending,      \* the reader's lease counts from the call, not from the answer
    EndOfEdge,          \* the end of an edge ends no record
    NewNode,            \* a restarted site is a new node
    LogsFirst,          \* the home logs the length before it grants its first lease
    WaitsAfter,         \* after a restart it keeps back each new answer for that time
    OutcomeWaitsAfter,  \* and answers no question for an earlier outcome
    VoteSays,           \* Withheld comes before a vote that writes under read leases
    NoGrantInDoubt      \* while a vote is in doubt the home grants no read lease

(* The home's children: the sites, and the reader itself.                  *)
Own == Cardinality(Sites) + 1
Children == Sites \cup (IF Direct THEN {Own} ELSE {})

VARIABLES
    home,       \* its records, its log, and the answers that it keeps back
    site,       \* what each site has
    reader,     \* its parent, its view and its lease
    writer,     \* which answers its program has
    whole,      \* which sites have an edge to the home
    down,       \* what is on its way from the home to each site
    inbox       \* what is on its way from the reader's parent to the reader

vars == <<home, site, reader, writer, whole, down, inbox>>

Init ==
    /\ home = [records |-> [c \in Children |-> 0],
               logged |-> 0,        \* durable: the length of a lease
               done |-> 0,          \* durable: the commits executed
               vote |-> "none",     \* durable: a vote, and whether it is in doubt
               part |-> 0,          \* durable: the position of the commit voted for
               waits |-> 0,         \* since a restart: for how long it answers nothing
               kept |-> {},         \* the commits whose answers it keeps back
               owed |-> [c \in Children |-> {}],    \* what a child has not seen
               restarts |-> 0]
    /\ site = [s \in Sites |-> [alive |-> TRUE, record |-> 0,
                                at |-> 0,       \* its position
                                wants |-> 0]]   \* what the reader has not seen
    /\ reader = [via |-> 1,         \* its parent; 0: it has none
                 at |-> 0,          \* how far its stream has come
                 view |-> 0,        \* how many commits it shows
                 due |-> 0,         \* the Seen that it owes until it goes on
                 lease |-> 0,
                 lag |-> 0]
    /\ writer = [answered |-> {},   \* the commits that its program has the answer for
                 withheld |-> FALSE,    \* Withheld came before the vote
                 early |-> FALSE]   \* answered by the votes alone
    /\ whole = [s \in Sites |-> TRUE]
    /\ down = [s \in Sites |-> <<>>]
    /\ inbox = <<>>

Max(a, b) == IF a > b THEN a ELSE b
Less(a, b) == IF a > b THEN a - b ELSE 0
Highest(set) == IF set = {} THEN 0 ELSE CHOOSE p \in set : \A q \in set : q <= p

Length == Lengths[home.restarts + 1]
Full == Less(Length, Margin)
Believes == reader.lease > 0

(* It stands where its old stream ended, until it is resynchronised.       *)
Held == reader.at > reader.view

Step(p) == [type |-> "Step", n |-> p]
Wanted(p) == [type |-> "Wanted", n |-> p]
Other(p) == [type |-> "Other", n |-> p]
Grant(left) == [type |-> "Grant", n |-> left]
WantedAgain(p) == IF p > 0 THEN <<Wanted(p)>> ELSE <<>>

OnlyGrants(queue) == SelectSeq(queue, LAMBDA m : m.type = "Grant")
NoGrants(queue) == SelectSeq(queue, LAMBDA m : m.type # "Grant")
Called == OnlyGrants(inbox) # <<>> \/ \E s \in Sites : OnlyGrants(down[s]) # <<>>

(* A child has seen all commits up to p.                                   *)
Seen(h, c, p) == [h EXCEPT !.owed[c] = {q \in @ : q > p}]

(* A record is over: nobody is awaited under it.                           *)
Ended(h, c) == [h EXCEPT !.records[c] = 0, !.owed[c] = {}]

(* A site's record is over: it awaits the reader no more.                  *)
SiteEnded(h, s) ==
    IF site[s].wants > 0 /\ whole[s] THEN Seen(h, s, site[s].wants) ELSE h

(* The reader sends Seen, and a site passes it on.                         *)
HomeLearns(h, p) ==
    IF reader.via = Own \/ whole[reader.via] THEN Seen(h, reader.via, p) ELSE h
SiteLearns(sites, p) ==
    [s \in Sites |-> IF s = reader.via /\ p >= sites[s].wants
                      THEN [sites[s] EXCEPT !.wants = 0] ELSE sites[s]]

(* What a child is asked again by a new edge.                              *)
Repeated(c) ==
    IF Repeats = "owed" THEN home.owed[c]
    ELSE IF Repeats = "kept" THEN home.owed[c] \cap home.kept ELSE {}

(* The reader has lost its stream.  It stands where that ended.            *)
Alone == [reader EXCEPT !.via = 0, !.at = reader.view, !.due = 0]

(***************************************************************************)
(* Time                                                                    *)
(***************************************************************************)

(* A grant that comes when its lease is over brings nothing.               *)
Aged(queue) ==
    IF ~CountsSending THEN queue
    ELSE LET older == [i \in 1..Len(queue) |->
                        IF queue[i].type = "Grant" THEN [queue[i] EXCEPT !.n = Less(@, 1)]
                        ELSE queue[i]]
         IN SelectSeq(older, LAMBDA m : m.type # "Grant" \/ m.n > 0)

(* The parents' clock goes on by h, the reader's by w.                     *)
Passes(h, w) ==
    LET records == [c \in Children |-> Less(home.records[c], h)]
        over == {s \in Sites : site[s].wants > 0 /\ site[s].record <= h}
        owed == [c \in Children |->
            IF records[c] = 0 THEN {}
            ELSE IF c \in over /\ whole[c] THEN {q \in home.owed[c] : q > site[c].wants}
            ELSE home.owed[c]]
    IN /\ home' = [home EXCEPT !.records = records, !.owed = owed, !.waits = Less(@, h)]
       /\ site' = [s \in Sites |-> [site[s] EXCEPT !.record = Less(@, h),
                                                   !.wants = IF s \in over THEN 0 ELSE @]]
       /\ reader' = [reader EXCEPT !.lease = Less(@, w), !.lag = @ + h - w]
       /\ down' = IF w = 1 THEN [s \in Sites |-> Aged(down[s])] ELSE down
       /\ inbox' = IF w = 1 THEN Aged(inbox) ELSE inbox
       /\ UNCHANGED <<writer, whole>>

Tick ==
    /\ reader.lag <= Skew
    /\ Passes(1, 1)

Lag ==
    /\ reader.lag < Skew
    /\ Passes(1, 0)

CatchUp ==
    /\ reader.lag > 0
    /\ Passes(0, 1)

(***************************************************************************)
(* Commits                                                                 *)
(***************************************************************************)

Holders == {c \in Children : home.records[c] > 0}
Concerned == Holders # {} \/ (WaitsAfter /\ home.waits > 0)

(* The next commit is executed.  Each child gets the step, and those with  *)
(* records SeenWanted behind it.                                           *)
News(c, p) == IF c \in Holders THEN <<Step(p), Wanted(p)>> ELSE <<Step(p)>>
Executed(p) ==
    LET keeps == AwaitsSeen /\ Concerned
    IN [home EXCEPT !.done = p,
                    !.kept = IF keeps THEN @ \cup {p} ELSE @,
                    !.owed = [c \in Children |-> IF c \in Holders THEN @[c] \cup {p} ELSE @[c]]]
Delivers(p) ==
    /\ down' = [s \in Sites |-> IF whole[s] THEN down[s] \o News(s, p) ELSE down[s]]
    /\ inbox' = IF reader.via = Own THEN inbox \o News(Own, p) ELSE inbox

(* Without Withheld, the step is the answer.                               *)
Commit ==
    LET p == home.done + 1
    IN /\ p <= Commits
       /\ home' = Executed(p)
       /\ Delivers(p)
       /\ writer' = IF p \in Executed(p).kept THEN writer ELSE [writer EXCEPT !.answered = @ \cup {p}]
    /\ UNCHANGED <<site, reader, whole>>

(* The home answers p: each child with a record has seen it, or may miss   *)
(* one more.  After a restart it does not know who has a lease.            *)
Missed(c, p) ==
    IF MissedUntilSeen THEN Cardinality({q \in home.owed[c] \ home.kept : q # p}) ELSE 0
AllSeen(p) == \A c \in Holders : p \in home.owed[c] => Missed(c, p) < Mods
Waits(guard) == guard /\ home.waits > 0
MayAnswer(p) ==
    IF p \in home.kept THEN ~Waits(WaitsAfter) /\ AllSeen(p) ELSE ~Waits(OutcomeWaitsAfter)

(* Another segment changes.  A site is sent SeenWanted for that, too.      *)
Change(s) ==
    /\ Elsewhere /\ whole[s] /\ home.owed[s] # {}
    /\ \A i \in 1..Len(down[s]) : down[s][i].type # "Other"
    /\ down' = [down EXCEPT ![s] = Append(@, Other(home.done))]
    /\ UNCHANGED <<home, site, reader, writer, whole, inbox>>

Open(p) == p <= home.done /\ p \notin writer.answered
Answered(p) ==
    /\ writer' = [writer EXCEPT !.answered = @ \cup {p}]
    /\ home' = [home EXCEPT !.kept = @ \ {p}]
    /\ UNCHANGED <<site, reader, whole, down, inbox>>

(* The writer asks for the outcome when the step comes.                    *)
Told(p) ==
    /\ Open(p) /\ (p = home.part => writer.withheld)
    /\ MayAnswer(p)
    /\ Answered(p)

(* It has lost its edge, and asks by another one.                          *)
ToldAnew(p) ==
    /\ Open(p)
    /\ OutcomeWaits => MayAnswer(p)
    /\ Answered(p)

(* It has lost its edge, and repeats by another one what the home has      *)
(* executed: an update, or its decision.                                   *)
ToldAgain(p) ==
    /\ Open(p)
    /\ AgainWaits => MayAnswer(p)
    /\ Answered(p)

(***************************************************************************)
(* A commit over two homes.  The other home votes yes.                     *)
(***************************************************************************)
Vote ==
    /\ Votes /\ home.vote = "none" /\ home.done < Commits
    /\ home' = [home EXCEPT !.vote = "doubt"]
    /\ writer' = [writer EXCEPT !.withheld = VoteSays /\ Concerned]
    /\ UNCHANGED <<site, reader, whole, down, inbox>>

(* The vote was lost with the writer's edge.  It asks by another one.      *)
VoteAnew ==
    /\ home.vote = "doubt" /\ ~writer.early
    /\ writer' = [writer EXCEPT !.withheld = VoteSays /\ Concerned]
    /\ UNCHANGED <<home, site, reader, whole, down, inbox>>

(* The votes are the answer.                                               *)
ByVotes ==
    /\ home.vote # "none" /\ ~writer.withheld /\ ~writer.early
    /\ home.part \notin writer.answered
    /\ writer' = [writer EXCEPT !.early = TRUE,
                                !.answered = IF home.part > 0 THEN @ \cup {home.part} ELSE @]
    /\ UNCHANGED <<home, site, reader, whole, down, inbox>>

(* The home learns the decision, from the writer or from the other home.   *)
Decide ==
    LET p == home.done + 1
    IN /\ home.vote = "doubt" /\ p <= Commits
       /\ home' = [Executed(p) EXCEPT !.vote = "ended", !.part = p]
       /\ Delivers(p)
       /\ writer' = IF writer.early THEN [writer EXCEPT !.answered = @ \cup {p}] ELSE writer
    /\ UNCHANGED <<site, reader, whole>>

(***************************************************************************)
(* The reader                                                              *)
(***************************************************************************)

(* It calls for a lease, and the home grants it.                           *)
Call ==
    /\ reader.via # 0 /\ ~Called
    /\ NoGrantInDoubt => home.vote # "doubt"
    /\ LET c == reader.via
       IN /\ home' = [home EXCEPT !.records[c] = Length,
                                  !.logged = IF LogsFirst THEN Max(@, Length) ELSE @]
          /\ down' = [s \in Sites |-> IF s = c THEN Append(down[s], Grant(Full)) ELSE down[s]]
          /\ inbox' = IF c = Own THEN Append(inbox, Grant(Full)) ELSE inbox
    /\ UNCHANGED <<site, reader, writer, whole>>

(* It takes what comes.                                                    *)
Take ==
    \E i \in 1..Len(inbox) :
        LET m == inbox[i]
            stands == ~Held
            sends == m.type = "Wanted" /\ (stands \/ ~SeenAfterView)
            at == IF m.type = "Step" THEN Max(reader.at, m.n) ELSE reader.at
            counts == m.type = "Grant" /\ (stands \/ ~GrantWhenStands)
            left == IF CountsSending THEN m.n ELSE Full
        IN /\ i = 1 \/ (~InOrder /\ m.type = "Grant")
           /\ inbox' = SubSeq(inbox, 1, i - 1) \o SubSeq(inbox, i + 1, Len(inbox))
           /\ reader' = [reader EXCEPT !.at = at,
                                       !.view = IF stands THEN at ELSE @,
                                       !.due = IF m.type = "Wanted" /\ ~sends THEN Max(@, m.n) ELSE @,
                                       !.lease = IF counts THEN Max(@, left) ELSE @]
           /\ home' = IF sends THEN HomeLearns(home, m.n) ELSE home
           /\ site' = IF sends THEN SiteLearns(site, m.n) ELSE site
           /\ UNCHANGED <<writer, whole, down>>

(* All its pages are resynchronised.                                       *)
GoesOn ==
    /\ Held
    /\ reader' = [reader EXCEPT !.view = reader.at, !.due = 0]
    /\ home' = IF reader.due > 0 THEN HomeLearns(home, reader.due) ELSE home
    /\ site' = IF reader.due > 0 THEN SiteLearns(site, reader.due) ELSE site
    /\ UNCHANGED <<writer, whole, down, inbox>>

GiveBack ==
    /\ GivesBack /\ reader.via # 0 /\ Believes
    /\ BackAnswered => ~Called
    /\ reader' = [reader EXCEPT !.lease = 0]
    /\ LET c == reader.via
       IN /\ home' = IF c = Own THEN Ended(home, Own) ELSE SiteEnded(home, c)
          /\ site' = [s \in Sites |-> IF s = c THEN [site[s] EXCEPT !.record = 0, !.wants = 0] ELSE site[s]]
    /\ UNCHANGED <<writer, whole, down, inbox>>

(* Its edge ends, and with it the call.                                    *)
Lose ==
    /\ reader.via # 0
    /\ LET c == reader.via
       IN /\ home' = IF EndOfEdge THEN home
                     ELSE IF c = Own THEN Ended(home, Own) ELSE SiteEnded(home, c)
          /\ site' = [s \in Sites |->
                IF s = c /\ ~EndOfEdge THEN [site[s] EXCEPT !.record = 0, !.wants = 0] ELSE site[s]]
          /\ down' = [s \in Sites |-> NoGrants(down[s])]
    /\ reader' = Alone
    /\ inbox' = <<>>
    /\ UNCHANGED <<writer, whole>>

(* Its stream begins at its new parent, which asks again what it has to.   *)
Join(c) ==
    /\ reader.via = 0
    /\ c \in Sites => site[c].alive /\ whole[c]
    /\ reader' = [reader EXCEPT !.via = c,
                                !.at = Max(@, IF c = Own THEN home.done ELSE site[c].at)]
    /\ inbox' = WantedAgain(IF c = Own THEN Highest(Repeated(Own)) ELSE site[c].wants)
    /\ UNCHANGED <<home, site, writer, whole, down>>

(***************************************************************************)
(* Sites                                                                   *)
(***************************************************************************)

(* A site takes what comes, and passes it on.  It sends Seen in order:     *)
(* each SeenWanted before is answered.  Those who read the other segment   *)
(* have seen everything.                                                   *)
Relay(s) ==
    /\ down[s] # <<>>
    /\ LET m == Head(down[s])
           asks == m.type = "Wanted" /\ site[s].record > 0 /\ SiteAsksChildren
           sends == ~asks /\ (m.type = "Wanted" \/ (m.type = "Other" /\ site[s].wants = 0))
           passes == m.type \in {"Step", "Grant"} \/ asks
       IN /\ down' = [down EXCEPT ![s] = Tail(@)]
          /\ site' = [site EXCEPT ![s].at = IF m.type = "Step" THEN Max(@, m.n) ELSE @,
                                  ![s].wants = IF asks THEN Max(@, m.n) ELSE @,
                                  ![s].record = IF m.type = "Grant" THEN Length ELSE @]
          /\ home' = IF sends THEN Seen(home, s, m.n) ELSE home
          /\ inbox' = IF reader.via = s /\ passes THEN Append(inbox, m) ELSE inbox
    /\ UNCHANGED <<reader, writer, whole>>

(* Its edge ends, and the streams of those below.                          *)
Ends(s) ==
    /\ whole' = [whole EXCEPT ![s] = FALSE]
    /\ down' = [down EXCEPT ![s] = <<>>]
    /\ reader' = IF reader.via = s THEN Alone ELSE reader
    /\ inbox' = IF reader.via = s THEN <<>> ELSE inbox
    /\ home' = IF EndOfEdge THEN home ELSE Ended(home, s)
    /\ UNCHANGED writer

Break(s) ==
    /\ s \in Breaks /\ whole[s]
    /\ Ends(s)
    /\ site' = [site EXCEPT ![s].wants = 0]

Mend(s) ==
    /\ ~whole[s] /\ site[s].alive
    /\ whole' = [whole EXCEPT ![s] = TRUE]
    /\ down' = [down EXCEPT ![s] = WantedAgain(Highest(Repeated(s)))]
    /\ site' = [site EXCEPT ![s].at = home.done]
    /\ UNCHANGED <<home, reader, writer, inbox>>

SiteRestarts(s) ==
    /\ s \in Restarts /\ site[s].alive
    /\ Ends(s)
    /\ site' = [site EXCEPT ![s] = [alive |-> ~NewNode, record |-> 0, at |-> site[s].at, wants |-> 0]]

(***************************************************************************)
(* The home restarts                                                       *)
(***************************************************************************)
HomeRestarts ==
    /\ home.restarts + 1 < Len(Lengths)
    /\ home' = [home EXCEPT !.records = [c \in Children |-> 0],
                            !.owed = [c \in Children |-> {}],
                            !.kept = {}, !.waits = home.logged, !.restarts = @ + 1]
    /\ whole' = [s \in Sites |-> FALSE]
    /\ down' = [s \in Sites |-> <<>>]
    /\ site' = [s \in Sites |-> [site[s] EXCEPT !.wants = 0]]
    /\ reader' = Alone
    /\ inbox' = <<>>
    /\ UNCHANGED writer

Next ==
    \/ Tick
    \/ Lag
    \/ CatchUp
    \/ Commit
    \/ \E s \in Sites : Change(s)
    \/ \E p \in 1..Commits : Told(p)
    \/ \E p \in 1..Commits : ToldAnew(p)
    \/ \E p \in 1..Commits : ToldAgain(p)
    \/ Vote
    \/ VoteAnew
    \/ ByVotes
    \/ Decide
    \/ Call
    \/ Take
    \/ GoesOn
    \/ GiveBack
    \/ Lose
    \/ \E c \in Children : Join(c)
    \/ \E s \in Sites : Relay(s)
    \/ \E s \in Sites : Break(s)
    \/ \E s \in Sites : Mend(s)
    \/ \E s \in Sites : SiteRestarts(s)
    \/ HomeRestarts

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold                                                          *)
(***************************************************************************)

(* Rule C2: while the reader serves hard reads without a message, it       *)
(* misses no more answered commits than it may.                            *)
Unseen ==
    Cardinality({p \in writer.answered : p > reader.view})
    + (IF writer.early /\ home.part = 0 THEN 1 ELSE 0)
Bounded == Believes /\ ~Held => Unseen <= Mods

(* Rule C4: while the reader believes, records lead from the home to it,   *)
(* or the home answers nothing.  A record of a dead site is waited for.    *)
Known ==
    Believes =>
        \/ home.waits > 0
        \/ \E c \in Children :
            home.records[c] > 0 /\ (c = Own \/ ~site[c].alive \/ site[c].record > 0)
=============================================================================
