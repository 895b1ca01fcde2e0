// Package join runs the discovery mechanisms of a channel, as internal/core/join decides: it
// starts and stops their sources, runs the timers, keeps the last good answers, writes the log,
// and tells the channel, or whoever else follows a target.
//
// Events run one at a time. Whatever a source says becomes one, and its caller does not wait.
// Sources may block, so they are called outside events, one call of a channel at a time. Close
// may come from anywhere, also from the stack of an update or of a source: nothing begins after it.
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

// Config is what is fixed for the life of a channel.
type Config struct {
	// Scheme is that of the target. Errors and lines of the log begin with it.
	Scheme string
	// Target is the channel's, as its user wrote it.
	Target string
	// Hide returns text without the passwords and tokens of the target, nil where it has none.
	Hide func(string) string
	// Patience is how long a mechanism that is slow holds back the others; 0 is the default.
	Patience time.Duration
	// Recorder takes the metrics, under the Label that gRPC has for the target; nil for none.
	Recorder estats.MetricsRecorder
	Label    string
	// Mechanisms are in priority order, at least one.
	Mechanisms []Mechanism
}

// Mechanism is one discovery mechanism of a channel (gRFC A37): one source.
type Mechanism struct {
	// Part has its name, which is empty only where there is no other, and its source.
	discovery.Mechanism
	// ServerName is put on each address; "" leaves it to the channel.
	ServerName string
	// TrustNames puts the hostname that a cluster gives an endpoint in its place.
	TrustNames bool
	// Key is the key of the last good answer while the channel is idle. Equal keys mean
	// the same endpoints, found in the same way. Nil keeps none.
	Key any
}

// partKey is the key under which the answers of a part are kept.
type partKey struct {
	whole any
	part  string
}

// consumer takes messages, in events.
type consumer interface {
	tell(core.Message) error
	close()
}

// Join is the mechanisms of one channel at work.
type Join struct {
	config Config
	events serial.Serializer // guards what follows
	calls  serial.Serializer // of sources
	closed atomic.Bool

	core    *core.Core
	slots   map[core.ID]*slot
	retired []core.ID // whose slots are no longer needed after this batch
	timers  map[core.Timer]*serial.Timer
	to      consumer
	settled func()  // called when no event is left, nil for nobody
	caller  *caller // whose answer is being told

	lookAgain serial.Slot
	live      *live.Channel
	shown     atomic.Pointer[[]live.Source]
	vain      error // why the only source could not be started; written before start returns
	ended     bool  // Close has had its turn
}

// slot is what the shell knows of a mechanism.
type slot struct {
	Mechanism
	id    core.ID
	whole *slot // of which it is a part, nil where it is none
	*naming
	of    *topology.Checked // the answer that was translated last,
	tree  topology.Tree     // and its tree
	noted string            // what the log said about the answer last

	gone atomic.Bool // what its source says counts no longer

	// Of the goroutine that calls sources.
	started        *discovery.Started // nil where there is nothing to call
	asks, failures serial.Slot
}

// caller waits for what the channel says of an answer.
type caller struct {
	id      core.ID
	verdict atomic.Pointer[error]
}

// start starts the sources on the stack of the caller. What they answer meanwhile becomes one update.
// A source that cannot be started has failed. That is an error only where it is the only one, and
// nothing is kept of it.
func (j *Join) start() error {
	j.slots, j.timers = make(map[core.ID]*slot), make(map[core.Timer]*serial.Timer)
	j.events.SetHooks(&serial.Hooks{Begin: func() {}, Flush: j.flush})
	j.shown.Store(new([]live.Source))
	j.live = live.New(j.config.Target, func() []live.Source { return *j.shown.Load() }) // nil where nobody looks
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
	return j.vain // it was written in an event that this stack has waited for
}

// given returns a mechanism as the core sees it. What is given is a *Mechanism, nil for a part.
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

// Close stops the sources. It does not wait for an update or a call of a source that is under way,
// because it may be on its stack: the sources are then closed afterwards.
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

// event does what an event calls for.
func (j *Join) event(actions func(now time.Time) []core.Action) func() {
	return func() { j.do(actions(time.Now())) }
}

// flush tells what has changed.
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

// told takes note of what the channel says of what it was told.
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

// do does what an event called for.
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

// log notes something about a mechanism.
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

// note logs what has no effect in an answer, and why no call can be made, when that changes.
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

// line returns text about a mechanism as an error or a line of the log. Names of clusters are
// from outside, and could otherwise add lines of their own.
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

// kept returns what is kept of a mechanism.
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

// saidOf returns an answer as it is kept.
func saidOf(a core.Answer) (s lastgood.Said) {
	s.Answer, _ = a.Content.(*topology.Checked)
	s.Names, _ = a.Names.(lastgood.Names)
	return s
}

// confirm notes that something was so at a time, an answer or, without one, what is kept.
func confirm(key any, said lastgood.Said, at time.Time) {
	if said.Answer == nil {
		lastgood.Process.Confirm(key, at)
	} else {
		lastgood.Process.Renew(key, said, at)
	}
}

// Stable returns err without the near end of a connection, so that the same failure has
// the same text each time. Errors of package net have it, such as "read udp
// 127.0.0.1:51234->127.0.0.1:53: i/o timeout".
func Stable(err error) error {
	return errors.New(nearEnd.ReplaceAllString(err.Error(), ""))
}

var nearEnd = regexp.MustCompile(`[0-9a-fA-F.:%\[\]]+->`)

// textOf returns the text of an error of a source, which may hold what came from outside: one
// line, without the secrets of the target.
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
