// Package join executes what internal/core/join decides: it starts and stops the sources of a
// channel's discovery mechanisms, runs timers, stores the last good answers, logs, and updates the
// channel or another consumer.
//
// Events run one at a time. A report from a source is queued as an event, so the source does not
// wait. Calls to sources have a queue of their own, because sources may block. Close may be called
// from anywhere, even from inside an update or from a source. After Close, no source is started.
package join

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery"
	core "github.com/understudy-lb/understudy/internal/core/join"
	"github.com/understudy-lb/understudy/internal/lastgood"
	"github.com/understudy-lb/understudy/internal/live"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/serial"
	"github.com/understudy-lb/understudy/internal/topology"
)

var logger = grpclog.Component("understudy")

// Config is the configuration of a Join. It must not change after Start or Follow.
type Config struct {
	// Scheme is the scheme of the target. It prefixes errors and log lines.
	Scheme string
	Target string
	// Hide returns a text without the passwords and tokens of the target. It may be nil.
	Hide func(string) string
	// Patience limits how long a slow mechanism delays the others. 0 means core.Patience.
	Patience time.Duration
	Recorder estats.MetricsRecorder
	Label    string
	// Mechanisms holds at least one mechanism, in priority order.
	Mechanisms []Mechanism
}

// Mechanism is one discovery mechanism of a channel (gRFC A37).
type Mechanism struct {
	// Mechanism is the source and its name. The name is empty only if there is no other mechanism.
	discovery.Mechanism
	// ServerName is the name that the certificates of endpoints are verified against. "" means the
	// channel's authority.
	ServerName string
	// TrustNames verifies the certificate of an endpoint against the endpoint's Hostname, if it has
	// one, instead of ServerName.
	TrustNames bool
	// Key identifies the mechanism's endpoints: while the channel is idle, the last good answer is
	// stored under it. If Key is nil, no answer is stored.
	Key any
}

// partKey is the Key of a mechanism in a list. It consists of the Key of the mechanism whose source
// sent the list, and of the name.
type partKey struct {
	whole any
	part  string
}

// consumer receives the messages of core.Core. Its methods are called in events.
type consumer interface {
	tell(core.Message) error
	close()
}

// Join runs the mechanisms of one channel.
type Join struct {
	config Config
	events serial.Serializer // guards the fields below that are not atomic
	calls  serial.Serializer // runs the calls to sources, one at a time
	closed atomic.Bool

	core    *core.Core
	slots   map[core.ID]*slot
	retired []core.ID // mechanisms whose slots are removed at the end of this batch of events
	timers  map[core.Timer]*serial.Timer
	to      consumer
	settled func()  // called after each batch of events; may be nil
	caller  *caller // the running call of Update whose answer is being passed to the channel, or nil

	lookAgain serial.Slot
	live      *live.Channel
	shown     atomic.Pointer[[]live.Source]
	vain      error // if the only source could not be started, the reason
	ended     bool
}

type slot struct {
	Mechanism
	id    core.ID
	whole *slot
	*naming
	of    *topology.Checked
	tree  topology.Tree
	noted string

	gone atomic.Bool // set when the mechanism is removed; later reports of its source are ignored

	// The following fields are used only in j.calls, the queue of calls to sources.
	started        *discovery.Started // nil before the source was started, and after it was stopped
	asks, failures serial.Slot
}

// caller is a call of Receiver.Update that returns the channel's response.
type caller struct {
	id      core.ID
	verdict atomic.Pointer[error]
}

// start starts the sources on the caller's stack. Their answers during the start become one update.
// A source that cannot be started counts as failed. If it is the only one and no answer is stored,
// start returns its error.
func (j *Join) start() error {
	j.slots, j.timers = make(map[core.ID]*slot), make(map[core.Timer]*serial.Timer)
	j.events.SetHooks(&serial.Hooks{Begin: func() {}, Flush: j.flush})
	j.shown.Store(new([]live.Source))
	j.live = live.New(j.config.Target, func() []live.Source { return *j.shown.Load() }) // live is nil unless the debug page is enabled.
	list := make([]core.Mechanism, len(j.config.Mechanisms))
	for i := range list {
		list[i] = given(&j.config.Mechanisms[i].Mechanism, &j.config.Mechanisms[i])
	}
	patience := j.config.Patience
	if patience <= 0 {
		patience = core.Patience
	}
	j.calls.Run(func() {
		j.events.Do(func() {
			var actions []core.Action
			j.core, actions = core.New(core.Config{Patience: patience, Kept: j.kept}, list)
			j.do(actions)
		})
	})
	if j.vain != nil {
		j.Close()
	}
	return j.vain // no lock is needed: the event that wrote vain has ended
}

// given converts a mechanism for core.Core. m is nil for a mechanism in a list.
func given(p *discovery.Mechanism, m *Mechanism) core.Mechanism {
	source := any(p.Source)
	if !reflect.ValueOf(source).Comparable() {
		source = nil
	}
	if m == nil {
		m = &Mechanism{Mechanism: *p}
	}
	return core.Mechanism{Name: p.Name, Source: source, OutlierDetection: p.OutlierDetection, Given: m}
}

// Close stops the sources. It does not wait for updates and calls to sources that are running,
// because it may be called from inside them. Sources are then stopped after these have returned.
func (j *Join) Close() {
	j.closed.Store(true)
	j.calls.Run(func() {
		j.events.Run(func() {
			if j.ended {
				return
			}
			j.ended = true
			j.do(j.core.Closed(time.Now()))
			j.to.close()
			j.live.Stop()
		})
	})
}

func (j *Join) event(actions func(now time.Time) []core.Action) func() {
	return func() { j.do(actions(time.Now())) }
}

// flush passes the messages of core.Core to the consumer. It is called at the end of each batch of
// events.
func (j *Join) flush() {
	for _, id := range j.retired {
		delete(j.slots, id)
	}
	j.retired = nil
	for !j.closed.Load() {
		m := j.core.Next()
		if m.Kind == core.Nothing {
			break
		}
		j.told(j.to.tell(m))
	}
	j.caller = nil
	if j.live != nil {
		j.show()
	}
	if j.settled != nil && !j.closed.Load() {
		j.settled()
	}
}

func (j *Join) told(err error) {
	var by core.ID
	if j.caller != nil {
		by = j.caller.id
	}
	refused, actions := j.core.Taken(err == nil, by)
	if refused {
		j.logRefusal(err)
	}
	if refused && j.caller != nil {
		j.caller.verdict.Store(&err)
	}
	j.do(actions)
}

func (j *Join) do(actions []core.Action) {
	for i := range actions {
		a := &actions[i]
		s := j.slots[a.ID]
		switch a.Kind {
		case core.Start:
			s = j.add(a)
			of := j.remembered(s, a)
			j.calls.Enqueue(func() { j.startSource(s, of) })
		case core.Stop:
			s.gone.Store(true)
			j.retired = append(j.retired, a.ID)
			j.calls.Enqueue(s.stop)
		case core.ConfirmLast:
			said := saidOf(a.Answer)
			j.calls.Enqueue(func() { s.confirm(said) })
		case core.AskAgain:
			s.asks.Enqueue(&j.calls, func() { j.call(s, func(s *discovery.Started) { s.ResolveNow() }) })
		case core.TellFailing:
			s.failures.Enqueue(&j.calls, func() { j.call(s, func(s *discovery.Started) { s.EndpointsFailed() }) })
		case core.StartTimer:
			j.startTimer(a.Timer, a.After)
		case core.StopTimer:
			j.timers[a.Timer].Stop()
			delete(j.timers, a.Timer)
		case core.Keep:
			said := saidOf(a.Answer)
			for _, p := range a.Parts {
				said.Parts = append(said.Parts, p.Given.(*Mechanism).Mechanism)
			}
			lastgood.Process.Put(s.Key, said, a.At)
		case core.Confirm:
			confirm(s.Key, saidOf(a.Answer), a.At)
		case core.Accept:
			j.count(s, accepted)
			j.note(s, a.Answer)
		case core.Warn, core.Say, core.Show, core.ShowWell:
			j.log(s, a)
		}
	}
}

func (j *Join) log(s *slot, a *core.Action) {
	text := a.Text
	if a.Kind == core.ShowWell {
		text = "well again after " + printable.Duration(a.After)
	}
	line := j.line(s.Name, text)
	switch a.Kind {
	case core.Warn:
		logger.Warning(line)
	case core.Say:
		logger.Info(line)
	}
	j.live.Note(line)
}

// note logs the notes in an answer, and the reason if no call can be made with it. It does not log
// the same text twice in a row.
func (j *Join) note(s *slot, a core.Answer) {
	c, _ := a.Content.(*topology.Checked)
	if c == nil {
		return
	}
	list := c.Notes
	if a.Why != "" {
		list = append(slices.Clip(list), a.Why+": no call can be made")
	}
	notes := strings.Join(list, "; ")
	if notes != s.noted && notes != "" {
		logger.Warning(j.line(s.Name, notes))
	}
	s.noted = notes
}

// line builds a line about a mechanism for an error or the log. It removes line breaks, because the
// name may come from a server.
func (j *Join) line(name, text string) string {
	prefix := j.config.Scheme + ": "
	if name != "" {
		return printable.Text(prefix + name + ": " + text)
	}
	return printable.Text(prefix + strings.TrimPrefix(text, prefix))
}

func (j *Join) startTimer(t core.Timer, after time.Duration) {
	timer := new(serial.Timer)
	j.timers[t] = timer
	timer.Start(&j.events, after, j.event(func(now time.Time) []core.Action {
		delete(j.timers, t)
		return j.core.Waited(now, t)
	}))
}

func (j *Join) kept(id core.ID) (core.Kept, bool) {
	now := time.Now()
	said, age, some := lastgood.Process.Get(j.slots[id].Key, now)
	k := core.Kept{Confirmed: now.Add(-age)}
	if said.Answer != nil {
		k.Answer = answer(said.Answer, said.Answer.Version, said.Names)
	}
	for i := range said.Parts {
		k.Parts = append(k.Parts, given(&said.Parts[i], nil))
	}
	return k, some
}

func answer(c *topology.Checked, version string, names lastgood.Names) core.Answer {
	return core.Answer{Content: c, Why: c.Unusable, Version: version, Names: names}
}

func saidOf(a core.Answer) (s lastgood.Said) {
	s.Answer, _ = a.Content.(*topology.Checked)
	s.Names, _ = a.Names.(lastgood.Names)
	return s
}

// confirm records in the store that the answer in said was valid at the given time. If said has
// none, the stored answer was.
func confirm(key any, said lastgood.Said, at time.Time) {
	if said.Answer == nil {
		lastgood.Process.Confirm(key, at)
	} else {
		lastgood.Process.Renew(key, said, at)
	}
}

// Stable returns err with the local addresses of connections removed from its text. Errors of
// package net contain them, as in "read udp 127.0.0.1:51234->127.0.0.1:53: i/o timeout", so the
// text would differ each time.
func Stable(err error) error {
	return errors.New(nearEnd.ReplaceAllString(err.Error(), ""))
}

var nearEnd = regexp.MustCompile(`[0-9a-fA-F.:%\[\]]+->`)

// textOf returns the text of a source's error in one line, without the secrets of the target.
func (j *Join) textOf(err error) string {
	text := strings.TrimSpace(Stable(err).Error())
	if isMistake(err) {
		text += " (a mistake to correct: waiting will not help)"
	}
	if j.config.Hide != nil {
		text = j.config.Hide(text)
	}
	return printable.Text(text)
}
