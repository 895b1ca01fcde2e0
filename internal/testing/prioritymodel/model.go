// Package prioritymodel is gRFC A56 written down as plainly as can be: from its text,
// not from the code that it is held against. It has a clock of its own, timers are
// points in time, and a child is updated as the pseudo-code does it: when Update
// returns, the child's state is what it made of the update.
//
// There is one model. With no rows it is A56 with the decisions of this project, and
// the oracle of internal/core/priority and of priority. Each row of
// docs/differences.md is a switch that makes it do what gRPC-Go does instead. For tests
// only.
package prioritymodel

import (
	"maps"
	"slices"
	"time"
)

// The connectivity states, as gRPC names them.
const (
	Idle             = "IDLE"
	Connecting       = "CONNECTING"
	Ready            = "READY"
	TransientFailure = "TRANSIENT_FAILURE"
)

// Report is a state and what a call gets in it: of a picker that a child reports, any
// text; "queue" for one that lets calls wait, of a child that has not reported; and
// "fail: " and an error for one of the policy's own.
type Report struct {
	State, Text string
	Err         string // of a failure, as it is quoted later

	Condition string   // "emptied" or "half-open" where a child says so
	Missing   float64  // the part of its weight that is not READY, or unproven
	Unproven  float64  // the part that is unproven
	Trying    []string // children that get a few of the calls, of what is published
}

// unreported is the state of a child before its first report.
var unreported = Report{State: Connecting, Text: "queue"}

func fails(err string) Report {
	return Report{State: TransientFailure, Text: "fail: " + err, Err: err}
}

// Reaction is what a child does from inside an update: it reports, and then returns
// the error if there is one.
type Reaction struct {
	Reports []Report
	Err     string
}

// Config is a configuration.
type Config struct {
	// Children are the children that are configured.
	Children   map[string]Child
	Priorities []string
	Of         []int // the source's priority that each belongs to, nil for its own

	FailoverTimeout, ChildRetention, RemovedChildRetention, FailbackDelay time.Duration

	MinReady, MinReadyRecovery float64

	WarmStandby  int
	FastFailover bool
	Single       []string // that can hold one connection only

	// FailbackJitter is what is drawn of the window: a random number is an input.
	FailbackJitter, MaxFailbackDelay time.Duration
}

// Child is the configuration of a child.
type Child struct {
	Policy string // the id of its policy: another one is another policy
	Ignore bool   // its requests for re-resolution
}

// Event is something that the model does.
type Event struct {
	// Verb is "create", "update" and "destroy" of a child, "exit-idle" and
	// "resolver-error" of one that is told so, "publish", and "resolve" for a request
	// for re-resolution that is passed on.
	Verb  string
	Child string
	// Report is what is published.
	Report Report
}

// Model is a priority policy.
type Model struct {
	// Rows are the rows of docs/differences.md in which the model is gRPC-Go's.
	Rows map[string]bool
	// React says what a child does from inside the update that it is given.
	React func(child string) Reaction
	// Log is called with everything that the model does.
	Log func(Event)
	// Stubs are the policies of the children, those that are closed, too.
	Stubs Stubs
	// Tie tells that two timers have ended at the same moment, so that what was done in
	// between depends on which was first.
	Tie bool

	now             time.Duration
	config          Config
	version         int // of the configuration
	children        map[string]*child
	created         int // how many children there were
	counted         int // how many reports
	currentPriority int // none for the pseudo-code's None
	candidates      []string
	updating        bool
	choosing        bool
	closed          bool
	errors          []string // of the update under way

	serving *child // the child in use, once it was good in use

	inUse     string // the child whose picker is published
	published string // which state of which child was published last
	force     bool   // publish, whatever was published last
	last      Report // published

	queue    []func() // p-inside-update, p-reactivated: reports yet to be handled
	refusals []func() // p-refused-first: to be handled right after the choice under way
}

const none = -1

// New returns a model that has had no update.
func New(rows map[string]bool) *Model {
	return &Model{
		Rows:            rows,
		React:           func(string) Reaction { return Reaction{} },
		Log:             func(Event) {},
		children:        map[string]*child{},
		currentPriority: none,
	}
}

// Last returns what was published last, the zero Report for nothing yet.
func (m *Model) Last() Report { return m.last }

func (m *Model) log(verb, child string) { m.Log(Event{Verb: verb, Child: child}) }

func (m *Model) names() []string { return slices.Sorted(maps.Keys(m.children)) }

// drain handles what is queued.
func (m *Model) drain() {
	for len(m.queue) > 0 {
		next := m.queue[0]
		m.queue = m.queue[1:]
		next()
	}
}
