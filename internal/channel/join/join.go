// Package join builds gRPC resolvers from the sources of package discovery. Packages that register
// a source import it. All decisions are made in internal/core/join, and this package carries them
// out: it starts and stops a channel's sources, wakes the core, stores the last good answers, logs,
// and updates the channel (or whoever else is listening).
//
// Events run one at a time. Reports from sources are queued as events so that sources never wait
// for us. Calls to sources have their own queue because they may block. Close can be called at any
// time, even during an update or by a source, and we don't start any sources after that.
package join

import (
	"cmp"
	"errors"
	"log/slog"
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
	core "github.com/understudy-lb/understudy/internal/core/join"
	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

var logger = grpclog.Component("understudy")

// Config configures a Join. It must not change after Start or Follow.
type Config struct {
	Scheme string
	Target string
	// Hide redacts the target's passwords and tokens. May be nil.
	Hide func(string) string
	// Patience limits how long a slow mechanism can hold up the others. Values below core.Patience
	// are raised to it.
	Patience time.Duration
	Recorder estats.MetricsRecorder
	Label    string
	// Logger gets a record when a source starts failing and another when it recovers. May be nil.
	Logger *slog.Logger
	// Entries are in priority order. There must be at least one.
	Entries []Entry

	// The fields below have no effect on Follow.

	// ServiceConfig is the user's service config in JSON, or "". It must not configure load
	// balancing.
	ServiceConfig string
	InUse         *stateattr.InUseReporter
	Settings      topology.Settings
	OnClose       func() // may be nil
}

// Entry is one entry of a target's list, or the whole target if it isn't a list. Its source may send
// a list of mechanisms, which share the entry's server name.
type Entry struct {
	// Mechanism has the source and its name. The name may only be empty if there's just one entry.
	discovery.Mechanism
	// ServerName is the name we verify certificates of endpoints against. If it's "", we use the
	// channel's authority.
	ServerName string
	// Key is the key under which the last good answer is stored while the channel is idle. If it's
	// nil, we don't store any.
	Key any
}

type Join struct {
	config      *Config
	events      serial.Serializer         // guards everything below that isn't atomic
	sourceCalls serial.Serializer         // runs calls to sources, one at a time
	closed      atomic.Pointer[time.Time] // when, or nil

	core          *core.Core
	sources       map[core.ID]*source
	wake          serial.Timer
	handle        func(core.Message) error
	onClose       func()         // may be nil
	afterBatch    func()         // called after each batch of events, may be nil
	pendingUpdate *pendingUpdate // the Update call whose answer we're passing on to the channel; empty if there's none

	records serial.Records
	reports serial.Limit

	resolveNow   serial.Slot
	live         *live.Channel
	shownSources atomic.Pointer[[]live.Source]
	startErr     error // set if the only source couldn't be started
}

// pendingUpdate is a Receiver.Update call that's waiting for the channel's response.
type pendingUpdate struct {
	id      core.ID
	refusal atomic.Pointer[error]
}

// We start sources on the caller's stack so that everything they answer right away ends up in one
// update. A source that can't be started counts as failed. If it's the only source and we don't
// have a stored answer either, start returns the error.
func (j *Join) start() error {
	j.sources, j.pendingUpdate = make(map[core.ID]*source), new(pendingUpdate)
	j.events.SetHooks(&serial.Hooks{Begin: func() {}, Flush: j.flush})
	j.shownSources.Store(new([]live.Source))
	j.live = live.New(j.config.Target, func() []live.Source { return *j.shownSources.Load() }) // may be nil, see live.New
	var list []core.Mechanism
	for i := range j.config.Entries {
		e := &j.config.Entries[i]
		list = append(list, core.Mechanism{Name: e.Name, Source: e.Source, Prefer: e.Prefer, Given: e})
	}
	config := core.Config{Patience: max(core.Patience, j.config.Patience), Kept: func(id core.ID) (core.Kept, bool) { return j.sources[id].kept() }}
	j.sourceCalls.Run(func() {
		j.events.Do(func() {
			var actions []core.Action
			j.core, actions = core.New(time.Now(), config, list)
			j.execute(actions)
		})
	})
	if j.startErr != nil {
		j.Close()
	}
	return j.startErr // no lock needed, the event that sets this field is done
}

// Close stops the sources. If an update or a call to a source is running, the sources are stopped
// once that call returns. We can't wait for it here, since it may be what's calling Close.
func (j *Join) Close() {
	now := time.Now()
	if !j.closed.CompareAndSwap(nil, &now) {
		return
	}
	j.sourceCalls.Run(func() {
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

func (j *Join) flush() {
	for j.closed.Load() == nil && j.startErr == nil { // don't update the channel if Start is about to return an error
		m := j.core.Next()
		if m.Kind == core.Nothing {
			break
		}
		err := j.handle(m)
		refused, actions := j.core.Delivered(err == nil, j.pendingUpdate.id)
		// If a priority has no endpoints, the policies already log that, and the channel uses the
		// other priorities.
		if refused && !errors.Is(err, balancer.ErrBadResolverState) {
			logger.Warningf("%s: %s: the channel rejects the endpoints: %v", j.config.Scheme, j.config.Target, err)
		}
		if refused {
			j.pendingUpdate.refusal.Store(&err)
		}
		j.execute(actions)
	}
	j.pendingUpdate = new(pendingUpdate)
	j.setTimer()
	if j.live != nil {
		j.updateLive()
	}
	if j.afterBatch != nil && j.closed.Load() == nil {
		j.afterBatch()
	}
}

func (j *Join) execute(actions []core.Action) {
	for i := range actions {
		a := &actions[i]
		s := j.sources[a.ID]
		switch a.Kind {
		case core.Start:
			s = j.addSource(a)
			j.sourceCalls.Enqueue(func() { j.startSource(s) })
		case core.Stop:
			s.removed.Store(true)
			delete(j.sources, a.ID)
			j.sourceCalls.Enqueue(s.stop)
		case core.CallResolveNow:
			s.resolveNow.Enqueue(&j.sourceCalls, func() { s.ifRunning(func(r *discovery.Started) { r.ResolveNow() }) })
		case core.CallEndpointsFailed:
			s.endpointsFailed.Enqueue(&j.sourceCalls, func() { s.ifRunning(func(r *discovery.Started) { r.EndpointsFailed() }) })
		case core.Keep:
			j.count(s, "accepted")
			j.logNotes(s, a.Answer)
			j.tell(s, a)
			lastGood.keep(s.key, a.Kept)
			fallthrough
		case core.Confirm:
			if !s.ownTime.Load() {
				lastGood.confirm(s.key, a.Answer, a.Confirmed, s, a.Current)
				continue
			}
			s.confirm.Enqueue(&j.sourceCalls, func() { lastGood.confirm(s.key, a.Answer, s.running.Confirmed(), s, false) })
		case core.Warn, core.Say, core.Show, core.ShowRecovered:
			j.log(s, a)
		}
	}
}

func (j *Join) log(s *source, a *core.Action) {
	text := a.Text
	if a.Kind == core.ShowRecovered {
		text = "recovered after " + printable.Duration(a.After)
	}
	line := j.line(s.name, text)
	switch a.Kind {
	case core.Warn:
		logger.Warning(line)
	case core.Say:
		logger.Info(line)
	}
	j.live.Note(line)
	j.tell(s, a)
}

const maxLength = 500 // bytes per text in a record

// To keep the program's logger quiet, we only tell it when a source starts failing and when it
// recovers.
func (j *Join) tell(s *source, a *core.Action) {
	attrs := []slog.Attr{slog.String("target", printable.Line(j.config.Target, maxLength)), slog.String("source", printable.Line(cmp.Or(s.name, j.config.Scheme), maxLength))}
	switch {
	case a.Kind == core.Warn && s.told.IsZero() && j.reports.Allows():
		s.told = time.Now()
		j.records.Write(j.config.Logger, "source fails", append(attrs, slog.String("reason", printable.Line(a.Text, maxLength)))...)
	case (a.Kind == core.Keep || a.Kind == core.ShowRecovered && a.Failure) && !s.told.IsZero():
		j.records.Write(j.config.Logger, "source recovered", append(attrs, slog.Duration("after", time.Since(s.told)))...)
		s.told = time.Time{}
	}
}

func (j *Join) logNotes(s *source, a core.Answer) {
	c, _ := a.Content.(*topology.Checked)
	if c == nil {
		return
	}
	list := c.Notes
	if a.Why != "" {
		list = append(slices.Clip(list), a.Why+": no calls can be made")
	}
	j.warn(s.logged, "notes", s.name, strings.Join(list, "; "))
}

type lastTexts map[string]string // keyed by topic

func (j *Join) warn(last lastTexts, topic, name, text string) {
	if text != "" && last[topic] != text {
		logger.Warning(j.line(name, text))
	}
	last[topic] = text
}

// The name may come from a server, so make sure that line breaks don't get through.
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

// Stable strips the local addresses of connections from err. The net package includes them in its
// errors, e.g. "read udp 127.0.0.1:51234->127.0.0.1:53: i/o timeout", which would make the text
// different every time.
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
