// Package feed joins the sources of a channel, in priority order, into what the channel
// is told. Sources find endpoints. The feed does the rest for all of them: it names
// children, merges the user's service config, seals endpoints against proxies, makes
// one update of a burst, drops answers that change nothing, keeps the last good answer,
// writes the log, and stops everything at Close.
//
// No lock is held while the feed calls the channel or a source, so either may call
// back, from anywhere: from inside Start, an update, ResolveNow or Close.
package feed

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/live"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/topology"
)

var logger = grpclog.Component("understudy")

// patience is how long the feed waits for the first of several mechanisms, unless the
// settings have another failover timeout.
const patience = 10 * time.Second

// Config is what is fixed for the life of a channel.
type Config struct {
	// Scheme is that of the target. Errors and lines of the log begin with it.
	Scheme string
	// Target is the channel's, as its user wrote it.
	Target string
	// Hide returns text without the passwords and tokens of the target, nil where it has none.
	Hide func(string) string
	// ServiceConfig is the user's, in JSON, without load balancing; "" for none.
	ServiceConfig string
	// Logger takes failovers; nil for none.
	Logger *slog.Logger
	// Recorder takes the metrics, under the Label that gRPC has for the target; nil for
	// none.
	Recorder estats.MetricsRecorder
	Label    string
	// Settings are those of the policies.
	Settings topology.Settings
	// Mechanisms are the sources, in priority order, at least one.
	Mechanisms []Mechanism
}

// Mechanism is one discovery mechanism of a channel (gRFC A37): one source.
type Mechanism struct {
	// Name is what people call it. It is unique, and empty only where there is no
	// other mechanism.
	Name string
	// ServerName is put on each address; "" leaves it to the channel.
	ServerName string
	// TrustNames puts the hostname that a cluster gives an endpoint in its place.
	TrustNames bool
	// Key is the key of the last good answer while the channel is idle. Equal keys mean
	// the same endpoints, found in the same way. Nil keeps none.
	Key any
	// Source tells one source from another, where it can be compared: see Inlet.Parts.
	Source any
	// OutlierDetection is what its cluster says of it, nil for nothing.
	OutlierDetection *topology.OutlierDetection
	// Start starts the source.
	Start func(*Inlet) (Watch, error)
}

// Watch is a source that was started. If it has the method ResolveNow(), the feed calls
// it when a connection to one of its endpoints fails.
type Watch interface{ Close() }

type resolverNow interface{ ResolveNow() }

// confirmer is a Watch that knows until when its last answer was confirmed.
type confirmer interface{ Confirmed() time.Time }

// Feed is the resolver.Resolver of one channel.
type Feed struct {
	config Config
	cc     resolver.ClientConn
	live   *live.Channel

	mu       sync.Mutex
	progress progress
	slots    []*slot          // one a mechanism
	children map[string]*slot // to the mechanism that a child of the last tree is of
	timer    *time.Timer      // sets progress.late
	started  bool             // every source is started
	starting int              // lists of parts whose sources are being started
	closed   bool
	retired  []Watch // to be closed when no source is being asked

	publishing bool // a goroutine is in publish, and sends whatever changes
	changed    bool // something has not been sent yet
	refused    bool // the channel did not take the last update
	noticed    bool // it was logged that a cluster wants outlier detection in vain

	asking bool // a goroutine is in askSources

	// Used by the one goroutine in publish.
	json   string // the last service config
	parsed *serviceconfig.ParseResult
}

// Start starts all sources, and sends what they answered meanwhile. One that cannot be
// started has failed. That is an error only where it is the only one, and nothing is kept of
// it. If the service config has a mistake Start starts none.
func Start(cc resolver.ClientConn, config Config) (*Feed, error) {
	f := &Feed{config: config, cc: cc}
	if err := f.checkServiceConfig(); err != nil {
		return nil, err
	}
	for i, m := range config.Mechanisms {
		f.slots = append(f.slots, newSlot(m, config.prefix(i)))
	}
	f.live = live.New(config.Target, f.sources) // which may be asked from now on
	if len(f.slots) > 1 {
		f.timer = time.AfterFunc(f.patience(), f.losePatience)
	}
	for _, s := range f.slots {
		watch, err := f.start(s)
		f.mu.Lock()
		s.watch = watch
		vain := err != nil && len(f.slots) == 1 && s.phase != answered
		f.mu.Unlock()
		if vain {
			closeAll(f.stop())
			f.live.Stop()
			if s.Name != "" {
				err = fmt.Errorf("%s: %w", Quote(s.Name), err)
			}
			return nil, err
		}
	}
	f.mu.Lock()
	f.started = true
	f.mu.Unlock()
	// Those that answered were told that all is well. They are asked again after an error.
	_ = f.publish(nil)
	return f, nil
}

// start starts the source of s. Where it cannot be started, that is its failure, and the
// error is returned, too.
func (f *Feed) start(s *slot) (Watch, error) {
	in := &Inlet{f, s}
	watch, err := s.Start(in)
	if err != nil {
		in.Fail(err)
		return idle{}, err
	}
	f.listen(s)
	return watch, nil
}

// idle is a source that was not started.
type idle struct{}

func (idle) Close() {}

// patience is how long one mechanism that is slow holds back the others.
func (f *Feed) patience() time.Duration {
	if wait := f.config.Settings.FailoverTimeout; wait > 0 {
		return wait
	}
	return patience
}

func (f *Feed) losePatience() {
	f.mu.Lock()
	f.progress.late = true
	f.changed = f.changed || !f.progress.sent
	f.mu.Unlock()
	_ = f.publish(nil) // see Start
}

// stop ends all that the feed does on its own. It returns the watches for the caller to
// close, unless they are closed or a goroutine in askSources closes them.
func (f *Feed) stop() []Watch {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
	}
	if f.closed {
		return nil
	}
	f.closed = true
	for _, s := range f.slots {
		s.parts.endWait()
	}
	for _, s := range f.all() {
		s.listenNoMore()
		kept.end(s.Key)
	}
	if f.asking {
		return nil
	}
	return f.open()
}

// Close closes the sources. No update begins after it. It does not wait for one that is
// under way, because it may be on its stack. Nor does it wait for a source that is
// being asked to look again: that one is closed afterwards.
func (f *Feed) Close() {
	f.confirmAll()
	closeAll(f.stop())
	f.live.Stop()
}

func closeAll(watches []Watch) {
	for _, w := range watches {
		w.Close()
	}
}

// Quote quotes text for an error of one line, and shortens it where it is long.
func Quote(text string) string {
	const most = 100
	if len(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q… (%d bytes)", text[:most], len(text))
}

// Stable returns err without the near end of a connection, so that the same failure has
// the same text each time. Errors of package net have it, such as "read udp
// 127.0.0.1:51234->127.0.0.1:53: i/o timeout".
func Stable(err error) error {
	return errors.New(nearEnd.ReplaceAllString(err.Error(), ""))
}

// textOf returns the text of an error of a source, which may hold what came from outside: one
// line, without the secrets of the target.
func (f *Feed) textOf(err error) string {
	text := strings.TrimSpace(Stable(err).Error())
	if f.config.Hide != nil {
		text = f.config.Hide(text)
	}
	return printable.Text(text)
}

var nearEnd = regexp.MustCompile(`[0-9a-fA-F.:%\[\]]+->`)
