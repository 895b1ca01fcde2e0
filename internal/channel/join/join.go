// Package join builds gRPC resolvers from the sources of package discovery. Packages that register
// a source import it. It executes what internal/core/join decides: it starts and stops the sources
// of a channel's discovery mechanisms, wakes the core, stores the last good answers, logs, and
// updates the channel or another consumer.
//
// Events run one at a time. We queue the reports of sources as events, so that a source does not
// wait. Sources may block, so calls to them have a queue of their own. Close may be called at any
// time, even during an update or by a source; after it, we start no source.
package join

import (
	"cmp"
	"errors"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
	core "github.com/understudy-lb/understudy/internal/core/join"
	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

var logger = grpclog.Component("understudy")

// Config is the configuration of a Join. It must not change after Start or Follow.
type Config struct {
	// Scheme is the scheme of the target. It prefixes errors and log lines.
	Scheme string
	Target string
	// Hide returns a text without the passwords and tokens of the target. It may be nil.
	Hide func(string) string
	// Patience limits how long a slow mechanism delays the others. It is at least core.Patience.
	Patience time.Duration
	Recorder estats.MetricsRecorder
	Label    string
	// Logger gets a record when a source fails, and when it answers again. It may be nil.
	Logger *slog.Logger
	// Mechanisms contains the mechanisms in priority order. It must not be empty.
	Mechanisms []Mechanism

	// The following fields have no effect on Follow.

	// ServiceConfig is the user's service config in JSON, or "". It must not configure load balancing.
	ServiceConfig string
	InUse         *stateattr.InUseReporter
	Settings      topology.Settings
	OnClose       func() // may be nil
}

// Mechanism is one discovery mechanism of a channel (gRFC A37).
type Mechanism struct {
	// Mechanism is the source and its name. The name is empty only if there is no other mechanism.
	discovery.Mechanism
	// ServerName is the name against which we verify the certificates of endpoints. "" means the
	// channel's authority.
	ServerName string
	// TrustNames verifies the certificate of an endpoint with a Hostname against this Hostname
	// instead of ServerName.
	TrustNames bool
	// Key is where we store the last good answer while the channel is idle. With nil, we store
	// none.
	Key any

	entry    string                     // the name; in a list, that of the mechanism whose source sent the list
	outliers *lbconfig.OutlierDetection // what OutlierDetection says
}

// Join runs the mechanisms of one channel.
type Join struct {
	config *Config
	events serial.Serializer // guards the fields below that are not atomic
	calls  serial.Serializer // runs the calls to sources, one at a time
	closed atomic.Bool

	core       *core.Core
	slots      map[core.ID]*slot
	wake       serial.Timer
	handle     func(core.Message) error // called with each message of core.Core
	onClose    func()                   // may be nil
	afterBatch func()                   // called after each batch of events; may be nil
	caller     *caller                  // the running call of Update whose answer is being passed to the channel; empty if there is none

	records serial.Records
	reports serial.Limit

	lookAgain    serial.Slot // requests for re-resolution
	live         *live.Channel
	shownSources atomic.Pointer[[]live.Source] // the sources on the debug page
	startErr     error                         // the error of the only source if it could not be started
}

type slot struct {
	Mechanism
	join   *Join
	id     core.ID
	parent *slot
	*naming
	content *topology.Checked
	tree    topology.Tree

	succeeds   bool                             // another mechanism had the name when this one was started
	removed    atomic.Bool                      // the mechanism was removed, so further reports of its source are ignored
	lastAnswer atomic.Pointer[topology.Checked] // at first the stored answer; core.Core compares pointers of equal answers
	usedAnswer atomic.Pointer[topology.Checked] // the last answer that core.Core got
	queued     atomic.Pointer[serial.Slot]      // the queued answer, or nil if the last queued event is not an answer

	// Only the events of Join.calls use these.
	started                     *discovery.Started // nil before the source was started, and after it was stopped
	resolveNow, endpointsFailed serial.Slot
}

// A caller waits in Receiver.Update for the channel's response.
type caller struct {
	id      core.ID
	refusal atomic.Pointer[error]
}

// We start the sources on the caller's stack, so the channel gets what they answer during the start
// in one update. A source that cannot be started counts as failed. If it is the only one and no
// answer is stored, its error is ours.
func (j *Join) start() error {
	j.slots, j.caller = make(map[core.ID]*slot), new(caller)
	j.events.SetHooks(&serial.Hooks{Begin: func() {}, Flush: j.flush})
	j.shownSources.Store(new([]live.Source))
	j.live = live.New(j.config.Target, func() []live.Source { return *j.shownSources.Load() }) // live is nil unless the debug page is enabled.
	list := make([]core.Mechanism, len(j.config.Mechanisms))
	for i := range list {
		list[i] = coreMechanism(&j.config.Mechanisms[i])
	}
	config := core.Config{Patience: max(core.Patience, j.config.Patience), Kept: func(id core.ID) (core.Kept, bool) { return j.slots[id].kept() }}
	j.calls.Run(func() {
		j.events.Do(func() {
			var actions []core.Action
			j.core, actions = core.New(time.Now(), config, list)
			j.execute(actions)
		})
	})
	if j.startErr != nil {
		j.Close()
	}
	return j.startErr // no lock is needed, because the event that sets this field has ended
}

func coreMechanism(m *Mechanism) core.Mechanism {
	source := any(m.Source)
	if !reflect.ValueOf(source).Comparable() {
		source = nil
	}
	return core.Mechanism{Name: m.Name, Source: source, OutlierDetection: m.OutlierDetection, Given: m}
}

// Close stops the sources. It cannot wait for running updates or for calls to sources, as these may
// have called it. The sources are then stopped after these calls have returned.
func (j *Join) Close() {
	if j.closed.Swap(true) {
		return
	}
	j.calls.Run(func() {
		j.events.Run(func() {
			j.execute(j.core.Closed(time.Now()))
			for _, f := range []func(){j.onClose, j.config.OnClose} {
				if f != nil {
					f()
				}
			}
			j.live.Stop()
		})
	})
}

// We do this at the end of each batch of events.
func (j *Join) flush() {
	for !j.closed.Load() && j.startErr == nil { // if Start returns an error, the channel must not get an update
		m := j.core.Next()
		if m.Kind == core.Nothing {
			break
		}
		err := j.handle(m)
		refused, actions := j.core.Delivered(err == nil, j.caller.id)
		if refused && !errors.Is(err, balancer.ErrBadResolverState) { // the policies log a priority without endpoints, and the channel uses the others
			logger.Warningf("%s: %s: the channel rejects the endpoints: %v", j.config.Scheme, j.config.Target, err)
		}
		if refused {
			j.caller.refusal.Store(&err)
		}
		j.execute(actions)
	}
	j.caller = new(caller)
	j.setTimer()
	if j.live != nil {
		j.updateLive()
	}
	if j.afterBatch != nil && !j.closed.Load() {
		j.afterBatch()
	}
}

func (j *Join) execute(actions []core.Action) {
	for i := range actions {
		a := &actions[i]
		s := j.slots[a.ID]
		switch a.Kind {
		case core.Start:
			s = j.addSlot(a)
			j.calls.Enqueue(func() { j.startSource(s) })
		case core.Stop:
			s.removed.Store(true)
			delete(j.slots, a.ID)
			j.calls.Enqueue(s.stop)
		case core.RequestResolution:
			s.resolveNow.Enqueue(&j.calls, func() { j.call(s, func(s *discovery.Started) { s.ResolveNow() }) })
		case core.TellFailing:
			s.endpointsFailed.Enqueue(&j.calls, func() { j.call(s, func(s *discovery.Started) { s.EndpointsFailed() }) })
		case core.Keep:
			j.count(s, "accepted")
			j.logNotes(s, a.Answer)
			j.tell(s, a)
			lastGood.keep(s.Key, a.Kept)
		case core.Confirm:
			j.calls.Enqueue(func() { lastGood.confirm(s.Key, a.Answer, s.confirmedUntil(a.Confirmed)) })
		case core.Warn, core.Say, core.Show, core.ShowRecovered:
			j.log(s, a)
		}
	}
}

func (j *Join) log(s *slot, a *core.Action) {
	text := a.Text
	if a.Kind == core.ShowRecovered {
		text = "recovered after " + printable.Duration(a.After)
	}
	line := j.line(s.Name, text)
	switch a.Kind {
	case core.Warn:
		logger.Warning(line)
	case core.Say:
		logger.Info(line)
	}
	j.live.Note(line)
	j.tell(s, a)
}

const maxLength = 500 // of a text in a record, in bytes

// The program's logger gets only this: that a source fails, and that it answers again.
func (j *Join) tell(s *slot, a *core.Action) {
	attrs := []slog.Attr{slog.String("target", printable.Line(j.config.Target, maxLength)), slog.String("source", printable.Line(cmp.Or(s.Name, j.config.Scheme), maxLength))}
	switch {
	case a.Kind == core.Warn && s.told.IsZero() && j.reports.Allows():
		s.told = time.Now()
		j.records.Write(j.config.Logger, "source fails", append(attrs, slog.String("reason", printable.Line(a.Text, maxLength)))...)
	case (a.Kind == core.Keep || a.Kind == core.ShowRecovered && a.Failure) && !s.told.IsZero():
		j.records.Write(j.config.Logger, "source recovered", append(attrs, slog.Duration("after", time.Since(s.told)))...)
		s.told = time.Time{}
	}
}

func (j *Join) logNotes(s *slot, a core.Answer) {
	c, _ := a.Content.(*topology.Checked)
	if c == nil {
		return
	}
	list := c.Notes
	if a.Why != "" {
		list = append(slices.Clip(list), a.Why+": no calls can be made")
	}
	j.warn(s.logged, "notes", s.Name, strings.Join(list, "; "))
}

// The key is the topic.
type lastTexts map[string]string

func (j *Join) warn(last lastTexts, topic, name, text string) {
	if text != "" && last[topic] != text {
		logger.Warning(j.line(name, text))
	}
	last[topic] = text
}

// We remove line breaks here: the name may come from a server.
func (j *Join) line(name, text string) string {
	prefix := j.config.Scheme + ": "
	if name != "" {
		return printable.Text(prefix + name + ": " + text)
	}
	return printable.Text(prefix + strings.TrimPrefix(text, prefix))
}

func (j *Join) setTimer() {
	j.wake.Stop()
	if at := j.core.Wake(); !at.IsZero() {
		j.wake.Start(&j.events, time.Until(at), func() { j.execute(j.core.Tick(time.Now())) })
	}
}

// Stable returns an error with the text of err, without the local addresses of connections. Errors
// of package net contain these, as in "read udp 127.0.0.1:51234->127.0.0.1:53: i/o timeout", so
// their texts would differ each time.
func Stable(err error) error {
	return errors.New(localAddress.ReplaceAllString(err.Error(), ""))
}

var localAddress = regexp.MustCompile(`[0-9a-fA-F.:%\[\]]+->`)

func (j *Join) textOf(err error) string {
	text := strings.TrimSpace(Stable(err).Error())
	if j.config.Hide != nil {
		text = j.config.Hide(text)
	}
	return printable.Text(text)
}
