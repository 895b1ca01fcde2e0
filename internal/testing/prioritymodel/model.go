// Package prioritymodel is a simple implementation of gRFC A56, written from the text of the gRFC
// and independently of the priority policy. It has its own clock, and represents a timer by the
// time at which it fires. As in the pseudo-code of the gRFC, a child has its new state when Update
// returns.
//
// By default, the model implements A56 with the additions of this project, and the tests of
// internal/core/priority and priority compare the policy with it. Each row of docs/differences.md
// that is turned on makes the model behave like gRPC-Go in one respect. For tests only.
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

// Report is a connectivity state with its picker, which Text represents: "queue" is a picker that
// queues calls, "fail: " followed by an error is a picker of the policy itself, and any other text
// is the picker of a child.
type Report struct {
	State, Text string
	Err         string
}

// initialReport is the state and the picker of a child before its first report.
var initialReport = Report{State: Connecting, Text: "queue"}

func failedReport(err string) Report {
	return Report{State: TransientFailure, Text: "fail: " + err, Err: err}
}

type Reaction struct {
	Reports []Report
	Err     string
}

type Config struct {
	Children         map[string]Child
	Priorities       []string
	SourcePriorities []int // maps each priority of the policy to a priority of the source; nil without near groups

	FailoverTimeout, ChildRetention, RemovedChildRetention time.Duration

	WarmStandby int
	Overflow    bool
}

type Child struct {
	Policy string
	Ignore bool
}

type Event struct {
	// Verb is what the policy does: "create", "update" or "destroy" a child, call the child's
	// ExitIdle ("exit-idle") or ResolverError ("resolver-error"), "publish" a state, or request a
	// re-resolution ("resolve").
	Verb   string
	Child  string
	Report Report
}

type Model struct {
	// Rows are the rows of docs/differences.md in which the model behaves like gRPC-Go.
	Rows map[string]bool
	// React returns what a child does when it is updated.
	React func(child string) Reaction
	Log   func(Event)
	Stubs Stubs
	// Tie reports whether two timers have fired at the same time, so that the result depends on
	// their order.
	Tie bool

	now             time.Duration
	config          Config
	version         int
	children        map[string]*child
	created         int
	currentPriority int
	updating        bool
	choosing        bool
	closed          bool
	errors          []string

	childInUse    string // the child whose picker is published
	published     string
	forcePublish  bool
	lastPublished Report

	delayed       []func() // only for rows p-inside-update and p-reactivated: handle reports later
	delayedErrors []func() // only for row p-refused-first: handle update errors after the current choice
}

func New(rows map[string]bool) *Model {
	return &Model{
		Rows:     rows,
		React:    func(string) Reaction { return Reaction{} },
		Log:      func(Event) {},
		children: map[string]*child{},
	}
}

func (m *Model) Last() Report { return m.lastPublished }

func (m *Model) log(verb, child string) { m.Log(Event{Verb: verb, Child: child}) }

func (m *Model) names() []string { return slices.Sorted(maps.Keys(m.children)) }

func (m *Model) drain() {
	for len(m.delayed) > 0 {
		next := m.delayed[0]
		m.delayed = m.delayed[1:]
		next()
	}
}
