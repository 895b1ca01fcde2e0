// Package prioritymodel is a plain implementation of gRFC A56, written from its text and not from
// our code. It has its own clock, and timers are points in time. As in the pseudo-code, a child has
// its new state when Update returns.
//
// Without rows, the model is A56 with the decisions of this project. The tests of
// internal/core/priority and priority compare with it. Each row of docs/differences.md makes the
// model behave like gRPC-Go in one respect. For tests only.
package prioritymodel

import (
	"maps"
	"slices"
	"time"
)

const (
	Idle             = "IDLE"
	Connecting       = "CONNECTING"
	Ready            = "READY"
	TransientFailure = "TRANSIENT_FAILURE"
)

// Report is a connectivity state and its picker. Text represents the picker: any text for the
// picker of a child, "queue" for a picker that queues calls, and "fail: " with an error for a
// picker of the policy itself.
type Report struct {
	State, Text string
	Err         string

	Condition string   // "emptied" or "half-open" if the child reports this
	Missing   float64  // the share of the child's weight that is not READY or is unproven
	Unproven  float64  // the share of the child's weight that is unproven
	Trying    []string // in published reports: the children that get a few trial calls
}

// unreported is a child's state before its first report.
var unreported = Report{State: Connecting, Text: "queue"}

func fails(err string) Report {
	return Report{State: TransientFailure, Text: "fail: " + err, Err: err}
}

type Reaction struct {
	Reports []Report
	Err     string
}

type Config struct {
	Children   map[string]Child
	Priorities []string
	Of         []int // for each priority of the policy, the source's priority; nil without near groups

	FailoverTimeout, ChildRetention, RemovedChildRetention, FailbackDelay time.Duration

	MinReady, MinReadyRecovery float64

	WarmStandby  int
	FastFailover bool
	Single       []string

	// FailbackJitter is the delay itself and not its maximum, because the model draws no random
	// numbers.
	FailbackJitter, MaxFailbackDelay time.Duration
}

type Child struct {
	Policy string
	Ignore bool
}

type Event struct {
	// Verb is "create", "update" or "destroy" for a child, "exit-idle" or "resolver-error" for a
	// call of a child, "publish", or "resolve" for a re-resolution.
	Verb   string
	Child  string
	Report Report
}

type Model struct {
	// Rows are the rows of docs/differences.md in which the model behaves like gRPC-Go.
	Rows map[string]bool
	// React returns the behaviour of a child in its update.
	React func(child string) Reaction
	Log   func(Event)
	// Decided is called with the row of docs/tiers.md that decides a choice.
	Decided func(row int)
	Stubs   Stubs
	// Tie reports whether two timers have fired at the same time, so that the result depends on
	// their order.
	Tie bool

	now             time.Duration
	config          Config
	version         int
	children        map[string]*child
	created         int
	counted         int
	currentPriority int // none represents None of the pseudo-code
	candidates      []string
	updating        bool
	choosing        bool
	closed          bool
	errors          []string

	serving *child // the child in use, if it has been good since it came into use

	inUse     string // the child whose picker is published
	published string
	force     bool
	last      Report

	queue    []func() // rows p-inside-update and p-reactivated: reports to handle later
	refusals []func() // row p-refused-first: errors to handle after the current choice
}

const none = -1

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
