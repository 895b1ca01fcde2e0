package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"

	_ "github.com/understudy-lb/understudy/discovery/file" // registers the scheme
	"github.com/understudy-lb/understudy/internal/testing/given"
)

const (
	serviceConfig = `{"healthCheckConfig": {"serviceName": ""}}`
	failoverTime  = 10 * time.Second // A56's
)

// condition is the condition of a backend and its link.
type condition struct {
	up     bool
	sick   bool // NOT_SERVING
	hang   bool
	answer codes.Code
	link   Link
	// since is when the backend was last unreachable or its condition last changed.
	since time.Time
	// turned is when the backend's answers to calls last changed.
	turned time.Time
	// proven is when a call to the backend first succeeded after a failure.
	proven time.Time
	// shown is when a call succeeded in a later interval. The interval in which a priority was
	// emptied does not count.
	shown time.Time
	// reset is when the backend's connections were last reset during calls.
	reset time.Time
	// failed is when a call to the backend last failed, and answered is when a call last succeeded.
	failed, answered time.Time
	// ended holds the results of attempts at this backend, ending with the latest. underWay counts
	// the attempts in progress.
	ended    []ending
	underWay int
	// ejected is when the log last reported the backend's ejection since the channel was opened. It
	// is zero after the backend must have returned.
	ejected time.Time
	// out is whether the log has reported the backend's ejection from any priority since then.
	out bool
}

// forget discards what calls have shown about the endpoint.
func (c *condition) forget() { c.proven, c.shown = time.Time{}, time.Time{} }

// look is the part of a condition that calls can observe.
type look struct {
	connects, works bool
	answer          codes.Code
}

func (c *condition) look() look { return look{c.connects(), c.works(), c.answer} }

// suspect reports whether calls to the backend failed so recently that the backend may still be
// ejected.
func (c *condition) suspect(d detection) bool {
	return time.Since(c.since) < d.rest() || time.Since(c.failed) < d.rest()
}

// connects reports whether a connection can be made and used, regardless of the answers to calls.
// This is all that A56 sees.
func (c *condition) connects() bool {
	return c.up && !c.sick && !c.link.Refuse && !c.link.LoseOut && !c.link.LoseIn && !c.link.Pause
}

// works reports whether calls succeed.
func (c *condition) works() bool { return c.connects() && !c.hang && c.answer == codes.OK }

// World is one channel with its source, network and backends. It exists in one bubble of
// testing/synctest.
type World struct {
	Log     *Log
	rand    *rand.Rand
	network *Network
	dns     dns
	source  Source
	target  string
	shown   string // the target as it appears in logs
	// settings are the channel's options.
	settings settings
	// events are the events that the seed has not left out, with their weights.
	events []event
	// builders are the product's builders. They store answers while a channel is idle.
	builders   []resolver.Builder
	goroutines int // number of goroutines before the first channel

	mu         sync.Mutex
	cc         *grpc.ClientConn
	channel    *channel
	channels   []*channel // including closed channels, which may still get updates
	backends   map[string]*Backend
	addresses  []string
	conditions map[string]*condition
	truth      Truth   // the last published truth
	history    []Truth // the truths published before

	happened  time.Time // time of the last event
	known     Truth     // the channel's last update, nil if there is none
	knownOf   []int     // the source's priority of each priority in known
	before    Truth     // the channel's update before known
	knownAt   time.Time
	repeated  int                  // how often the same update was accepted since the last event
	openedAt  time.Time            // when the channel was opened
	lastTold  time.Time            // when any channel was last updated while the source worked
	gone      map[string]time.Time // addresses removed from the channel, and when
	ever      map[string]bool      // addresses that any channel has had
	announced string               // the last log line before an update

	faulty    string // what is wrong with the source, "" for nothing
	wellSince time.Time
	changedAt time.Time // when the source last changed
	lowest    int       // the priority in use when the world was last quiet; -1 if there is none
	vital     []string  // the endpoints of that priority and of the priorities above it
	disagrees bool      // the channel's update differs from the source
	divided   bool      // the second management server was in use for too long
	detected  time.Time // when the channel's outlier detection last changed
	phased    time.Time // endpoints of some priority may return until this time, according to the log
	checking  bool      // the traffic pauses
	calls     Calls
	link      Link   // the link to a working backend
	pair      *pair  // the pair of faults, nil in other worlds
	judge     *judge // nil in other worlds
	marked    marked // what the world has reached
	// dialFailed is when the last connection attempt to each backend failed.
	dialFailed map[string]time.Time
}

// Calls counts the results of calls, the product's failovers, and the checks in quiet times.
type Calls struct{ Made, Answered, Failed, Waited, Failovers, Checks int }

// String returns the counts as a sentence.
func (c Calls) String() string {
	return fmt.Sprintf("%d calls: %d answered, %d failed, %d were never sent; %d failovers; %d checks in quiet periods", c.Made, c.Answered, c.Failed, c.Waited, c.Failovers, c.Checks)
}

// nobody is an address without a backend.
const nobody = "10.0.1.1:443"

// rand returns the world's random generator. Each pair has its own.
func (c Config) rand(seed uint64) *rand.Rand {
	own := uint64(0)
	if c.Pair != "" {
		h := fnv.New64a()
		_, _ = h.Write([]byte(c.Pair)) // Write of a hash never fails
		own = h.Sum64()
	}
	return rand.New(rand.NewPCG(seed, own)) //nolint:gosec // draws a schedule of faults, not a secret
}

// newWorld returns a world in which everything works.
func newWorld(seed uint64, config Config) (*World, error) {
	w := &World{
		Log:        newLog(),
		rand:       config.rand(seed),
		backends:   make(map[string]*Backend),
		conditions: make(map[string]*condition),
		gone:       make(map[string]time.Time),
		ever:       make(map[string]bool),
		dialFailed: make(map[string]time.Time),
		goroutines: len(goroutines()),
	}
	living.Store(w)
	w.network = NewNetwork(w.Log.Event)
	w.addBackends()
	var near nearby
	if config.Pair == "" {
		near = newNearby(w.rand)
	}
	w.settings.near = near // the preference depends on the source's localities
	w.truth = w.newTruth()
	kind := config.Kind
	if drawn := kinds[w.rand.IntN(len(kinds))]; kind == "" {
		kind = drawn
	}
	w.source = w.newSource(kind, config)
	w.settings = newSettings(w.rand)
	w.events = drawEvents(w.rand)
	w.settings.choosePlace(near, w.rand)
	if config.Pair != "" {
		w.choosePair(config.Pair)
	}
	if config.PickFirst {
		w.settings.choosePickFirst()
	}
	w.target = w.settings.within(w.source.Target())
	u, err := url.Parse(w.target)
	if err != nil {
		return w, err
	}
	w.shown = resolver.Target{URL: *u}.String()
	w.changedAt = time.Now()
	w.builders = given.Builders(append(w.source.Options(), given.Set("ServiceConfig", serviceConfig))...)
	w.Log.Event("seed %d; target %s; %v; %v", seed, w.target, w.settings.timing, w.truth)
	if s := part[*edsSource](w); s != nil {
		if err := s.open(neighbour); err != nil {
			return w, err
		}
	}
	if config.Pair == "" && w.rand.IntN(4) == 0 {
		w.failSource() // so that the channel waits for its first answer
	}
	return w, w.dial()
}

// addBackends starts the backends.
func (w *World) addBackends() {
	for i := range 9 {
		address := fmt.Sprintf("10.0.0.%d:443", i+1)
		b := NewBackend(w.network, address, func(string) {})
		b.Up()
		w.addresses = append(w.addresses, address)
		w.backends[address] = b
		w.conditions[address] = &condition{up: true, since: time.Now()}
	}
	w.conditions[nobody] = &condition{}
}

// dial opens a channel and discards the updates of the previous one.
func (w *World) dial() error {
	c := newChannel(w)
	observer := &observer{sentTo: w.sentTo, ended: w.attemptEnded, failover: c.failover}
	var overheard []resolver.Builder
	for _, b := range w.builders {
		overheard = append(overheard, &teller{b, c})
	}
	w.mu.Lock()
	w.channels = append(w.channels, c)
	if w.channel != nil {
		w.calls.Failovers += w.channel.failovers
	}
	w.channel, w.known, w.before, w.openedAt = c, nil, nil, time.Now()
	clear(w.gone)
	for _, condition := range w.conditions {
		condition.ejected, condition.out = time.Time{}, false
	}
	w.mu.Unlock()
	cc, err := grpc.NewClient(w.target,
		grpc.WithResolvers(overheard...),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(w.dialBackend),
		grpc.WithStatsHandler(observer),
		grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: w.settings.maxBackoff},
			MinConnectTimeout: attemptTime,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: w.settings.keepalive, Timeout: w.settings.keepaliveTimeout, PermitWithoutStream: true}))
	if err != nil {
		return err
	}
	cc.Connect()
	w.mu.Lock()
	w.cc = cc
	w.mu.Unlock()
	return nil
}

// isOpen reports whether a channel is the world's and is not being closed.
func (w *World) isOpen(c *channel) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.channel == c && w.cc != nil
}

func (w *World) channelNow() *channel {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.channel
}

// detects reports whether the channel detects outliers in any priority. The caller must hold the
// lock.
func (w *World) detects() bool { return w.known.detects() }

// rest is how long changes may continue after settleTime. The caller must hold the lock.
func (w *World) rest() time.Duration {
	longest := time.Duration(0)
	for _, tier := range w.known {
		longest = max(longest, tier.detection().rest())
	}
	return w.settings.rest() + longest
}

// settleTime limits how long the current state takes to settle. The caller must hold the lock.
func (w *World) settleTime() time.Duration {
	wait := w.settings.patience(max(len(w.truth), len(w.known)))
	for _, c := range w.conditions {
		if c.hang && c.link.LoseIn != c.link.LoseOut {
			// When the deadlines of calls pass, the server resets their streams, and keepalive
			// counts this as activity.
			return 2 * wait // the deadline of an earlier call, plus the usual time
		}
	}
	return wait
}
