// Package prioritymodel is a simple implementation of gRFC A56. It was written from the text alone,
// without looking at the priority policy. It has its own clock, and a timer is just the time at
// which it fires. As in A56's pseudo-code, a child has its new state by the time Update returns.
//
// By default, the model has this project's additions to A56, and tests of internal/core/priority
// and priority compare the policy with it. Rows of docs/differences.md can be turned on, and each
// makes the model behave like gRPC-Go in one respect.
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

// Report is a connectivity state and a picker. Text describes the picker: "queue" if it queues
// calls, "fail: " and an error if it's the policy's own, and anything else if it's a child's.
type Report struct {
	State, Text string
	Err         string
}

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
	SourcePriorities []int // priority at the source for each entry of Priorities; nil without near groups

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
	// Rows are the rows of docs/differences.md that are turned on.
	Rows  map[string]bool
	React func(child string) Reaction
	Log   func(Event)
	Stubs Stubs
	// Tie is set if two timers have fired at the same time, because the result then depends on
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

	childInUse    string
	published     string
	forcePublish  bool
	lastPublished Report

	delayed       []func() // reports to handle later; only for rows p-inside-update and p-reactivated
	delayedErrors []func() // update errors to handle after the current choice; only for row p-refused-first
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
