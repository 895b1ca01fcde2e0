// Package prioritymodel implements gRFC A56 as plainly as possible, from its text and not from our
// code. It has its own clock, timers are points in time, and updates of children follow the
// pseudo-code: when Update returns, the child's state is the result of the update.
//
// Without rows the model is A56 with the decisions of this project, and the oracle of
// internal/core/priority and of priority. Each row of docs/differences.md is a switch that makes it
// behave like gRPC-Go. For tests only.
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

// Report is a state and the result of a call in that state. The result is any text for a picker
// that a child reports, "queue" for calls that wait, and "fail: " with an error for the policy's
// own picker.
type Report struct {
	State, Text string
	Err         string // the error of a failure, as later messages quote it

	Condition string   // "emptied" or "half-open" where a child says so
	Missing   float64  // the share of the weight that is not READY, or is unproven
	Unproven  float64  // the unproven share
	Trying    []string // published only: children that get a few of the calls
}

// unreported is the state of a child before its first report.
var unreported = Report{State: Connecting, Text: "queue"}

func fails(err string) Report {
	return Report{State: TransientFailure, Text: "fail: " + err, Err: err}
}

// Reaction is what a child does inside an update: it makes its reports and then returns the error,
// if any.
type Reaction struct {
	Reports []Report
	Err     string
}

// Config is a configuration.
type Config struct {
	// Children are the configured children.
	Children   map[string]Child
	Priorities []string
	Of         []int // the source's priority of each priority, nil if they are the same

	FailoverTimeout, ChildRetention, RemovedChildRetention, FailbackDelay time.Duration

	MinReady, MinReadyRecovery float64

	WarmStandby  int
	FastFailover bool
	Single       []string // children that can hold only one connection

	// FailbackJitter is the value drawn from the window: randomness is an input.
	FailbackJitter, MaxFailbackDelay time.Duration
}

// Child is the configuration of a child.
type Child struct {
	Policy string // the id of its policy; another id is another policy
	Ignore bool   // ignore the child's re-resolution requests
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
	// Stubs are the policies of all children, including closed policies.
	Stubs Stubs
	// Tie is set if two timers ended at the same time. The result then depends on their order.
	Tie bool

	now             time.Duration
	config          Config
	version         int // version of the configuration
	children        map[string]*child
	created         int // number of children created so far
	counted         int // number of reports so far
	currentPriority int // none represents None in the pseudo-code
	candidates      []string
	updating        bool
	choosing        bool
	closed          bool
	errors          []string // errors of the update in progress

	serving *child // the child in use, if it has been good while in use

	inUse     string // the child whose picker is published
	published string // the last published state and its child
	force     bool   // publish even if nothing changed
	last      Report // the last published report

	queue    []func() // p-inside-update, p-reactivated: pending reports
	refusals []func() // p-refused-first: pending until the current choice is complete
}

const none = -1

// New returns a model that has not received an update.
func New(rows map[string]bool) *Model {
	return &Model{
		Rows:            rows,
		React:           func(string) Reaction { return Reaction{} },
		Log:             func(Event) {},
		children:        map[string]*child{},
		currentPriority: none,
	}
}

// Last returns the last published report, or the zero Report if nothing has been published.
func (m *Model) Last() Report { return m.last }

func (m *Model) log(verb, child string) { m.Log(Event{Verb: verb, Child: child}) }

func (m *Model) names() []string { return slices.Sorted(maps.Keys(m.children)) }

// drain handles pending reports.
func (m *Model) drain() {
	for len(m.queue) > 0 {
		next := m.queue[0]
		m.queue = m.queue[1:]
		next()
	}
}
