// Package prioritymodel implements gRFC A56 as plainly as possible, from its text and not from our
// code. It has its own clock, timers are points in time, and updates of children follow the
// pseudo-code: when Update returns, the child's state is the result of the update.
//
// Without rows, the model is A56 with the decisions of this project. Tests of
// internal/core/priority and priority use it as an oracle. Each row of docs/differences.md is a
// switch that makes the model behave like gRPC-Go in one respect. For tests only.
package prioritymodel

import (
	"maps"
	"slices"
	"time"
)

// The connectivity states, with the names that gRPC uses.
const (
	Idle             = "IDLE"
	Connecting       = "CONNECTING"
	Ready            = "READY"
	TransientFailure = "TRANSIENT_FAILURE"
)

// Report is a connectivity state and what its picker does. Text is any text for a picker of a
// child, "queue" for a picker that makes calls wait, and "fail: " with an error for a picker of the
// policy itself.
type Report struct {
	State, Text string
	Err         string // error of TRANSIENT_FAILURE, as later errors quote it

	Condition string   // "emptied" or "half-open" if the child reports this, else ""
	Missing   float64  // share of the child's weight that is not READY or is unproven
	Unproven  float64  // share of the child's weight that is unproven
	Trying    []string // in published reports: children that get a few calls as a trial
}

// unreported is the state of a child before its first report.
var unreported = Report{State: Connecting, Text: "queue"}

func fails(err string) Report {
	return Report{State: TransientFailure, Text: "fail: " + err, Err: err}
}

// Reaction is what a child does inside an update: it makes these reports and then returns the
// error, if there is one.
type Reaction struct {
	Reports []Report
	Err     string
}

// Config is a configuration.
type Config struct {
	// Children are the configured children.
	Children   map[string]Child
	Priorities []string
	Of         []int // the source's priority that each priority is a part of; nil if there are no near groups

	FailoverTimeout, ChildRetention, RemovedChildRetention, FailbackDelay time.Duration

	MinReady, MinReadyRecovery float64

	WarmStandby  int
	FastFailover bool
	Single       []string // children that can hold only one connection

	// FailbackJitter is the jitter itself, not its maximum, because the model draws no random
	// numbers.
	FailbackJitter, MaxFailbackDelay time.Duration
}

// Child is the configuration of a child.
type Child struct {
	Policy string // id of the child's policy; a new id means a new policy
	Ignore bool   // ignore re-resolution requests of the child
}

// Event is an action of the model.
type Event struct {
	// Verb is "create", "update" or "destroy" for a child, "exit-idle" or "resolver-error" if it is
	// sent to a child, "publish", or "resolve" for a re-resolution request that is passed on.
	Verb  string
	Child string
	// Report is the published report.
	Report Report
}

// Model is a priority policy.
type Model struct {
	// Rows are the rows of docs/differences.md for which the model behaves like gRPC-Go.
	Rows map[string]bool
	// React returns the reaction of a child to the update that it receives.
	React func(child string) Reaction
	// Log is called for each action.
	Log func(Event)
	// Decided is called with the row of docs/tiers.md that decides a choice.
	Decided func(row int)
	// Stubs are the policies of all children, including closed policies.
	Stubs Stubs
	// Tie is set if two timers ended at the same time. The result then depends on their order.
	Tie bool

	now             time.Duration
	config          Config
	version         int // number of configurations so far
	children        map[string]*child
	created         int // number of children created so far
	counted         int // number of reports so far
	currentPriority int // none if it is None in the pseudo-code
	candidates      []string
	updating        bool
	choosing        bool
	closed          bool
	errors          []string // errors of the update in progress

	serving *child // the child in use, if it has been good since it came into use

	inUse     string // the child whose picker is published
	published string // identifies the state that was last published, and its child
	force     bool   // publish the state even if it has not changed
	last      Report // the last published report

	queue    []func() // for rows p-inside-update and p-reactivated: reports to handle later
	refusals []func() // for row p-refused-first: errors to handle after the current choice
}

const none = -1

// New returns a model that has not received an update.
func New(rows map[string]bool) *Model {
	return &Model{
		Rows:            rows,
		React:           func(string) Reaction { return Reaction{} },
		Log:             func(Event) {},
		Decided:         func(int) {},
		children:        map[string]*child{},
		currentPriority: none,
	}
}

// Last returns the last published report, or the zero Report if nothing has been published.
func (m *Model) Last() Report { return m.last }

func (m *Model) log(verb, child string) { m.Log(Event{Verb: verb, Child: child}) }

func (m *Model) names() []string { return slices.Sorted(maps.Keys(m.children)) }

// drain handles the queued reports.
func (m *Model) drain() {
	for len(m.queue) > 0 {
		next := m.queue[0]
		m.queue = m.queue[1:]
		next()
	}
}
