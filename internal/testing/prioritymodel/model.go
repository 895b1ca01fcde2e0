// Package prioritymodel implements gRFC A56 as plainly as possible, from its text and not from our
// code. It has its own clock, and timers are points in time. Children are updated as in the
// pseudo-code: when Update returns, the state of the child is the result of the update.
//
// Without rows, the model is A56 with the decisions of this project, and the tests of
// internal/core/priority and priority compare with it. Each row of docs/differences.md makes the
// model behave like gRPC-Go in one respect. For tests only.
package prioritymodel

import (
	"maps"
	"slices"
	"time"
)

// The connectivity states, by gRPC's names.
const (
	Idle             = "IDLE"
	Connecting       = "CONNECTING"
	Ready            = "READY"
	TransientFailure = "TRANSIENT_FAILURE"
)

// Report is a connectivity state and what its picker does. Text is any text for the picker of a
// child, "queue" for a picker that makes calls wait, and "fail: " with an error for a picker of the
// policy itself.
type Report struct {
	State, Text string
	Err         string // the error of TRANSIENT_FAILURE, as later errors quote it

	Condition string   // "emptied" or "half-open" if the child reports that
	Missing   float64  // the share of the child's weight that is not READY or is unproven
	Unproven  float64  // the share of the child's weight that is unproven
	Trying    []string // in published reports: the children that get a few calls as a trial
}

// unreported is a child's state before its first report.
var unreported = Report{State: Connecting, Text: "queue"}

func fails(err string) Report {
	return Report{State: TransientFailure, Text: "fail: " + err, Err: err}
}

// Reaction is what a child does in an update: it makes these reports and then returns the error, if
// there is one.
type Reaction struct {
	Reports []Report
	Err     string
}

// Config is the configuration of an update.
type Config struct {
	Children   map[string]Child
	Priorities []string
	Of         []int // by priority of the policy: the source's priority that it belongs to; nil without near groups

	FailoverTimeout, ChildRetention, RemovedChildRetention, FailbackDelay time.Duration

	MinReady, MinReadyRecovery float64

	WarmStandby  int
	FastFailover bool
	Single       []string // children that can have only one connection

	// FailbackJitter is the jitter itself and not its maximum, because the model draws no random
	// numbers.
	FailbackJitter, MaxFailbackDelay time.Duration
}

// Child is the configuration of a child.
type Child struct {
	Policy string // id of the child's policy; another id is another policy
	Ignore bool   // ignore the child's requests for re-resolution
}

// Event is an action of the model.
type Event struct {
	// Verb is "create", "update" or "destroy" for a child, "exit-idle" or "resolver-error" for one
	// that gets it, "publish", or "resolve" for a re-resolution that is passed on.
	Verb   string
	Child  string
	Report Report
}

// Model is a priority policy after gRFC A56.
type Model struct {
	// Rows are the rows of docs/differences.md in which the model behaves like gRPC-Go.
	Rows map[string]bool
	// React returns what a child does in its update.
	React func(child string) Reaction
	// Log is called for each action.
	Log func(Event)
	// Decided is called with the row of docs/tiers.md that decides a choice.
	Decided func(row int)
	// Stubs are the policies of all children, including closed ones.
	Stubs Stubs
	// Tie reports whether two timers have ended at the same time, so that the result depends on
	// their order.
	Tie bool

	now             time.Duration
	config          Config
	version         int // how many configurations there were
	children        map[string]*child
	created         int // how many children were created
	counted         int // how many reports there were
	currentPriority int // none for the pseudo-code's None
	candidates      []string
	updating        bool
	choosing        bool
	closed          bool
	errors          []string // the errors of the current update

	serving *child // the child in use, if it has been good at some time since it came into use

	inUse     string // the child whose picker is published
	published string // what was last published: the state and its child
	force     bool   // publish the state even if it has not changed
	last      Report // the last published report

	queue    []func() // rows p-inside-update and p-reactivated: reports to handle later
	refusals []func() // row p-refused-first: errors to handle after the current choice
}

const none = -1

// New returns a model without a configuration.
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

// Last returns the last published report, or the zero Report before the first one.
func (m *Model) Last() Report { return m.last }

func (m *Model) log(verb, child string) { m.Log(Event{Verb: verb, Child: child}) }

func (m *Model) names() []string { return slices.Sorted(maps.Keys(m.children)) }

func (m *Model) drain() {
	for len(m.queue) > 0 {
		next := m.queue[0]
		m.queue = m.queue[1:]
		next()
	}
}
