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
	failoverTime  = 10 * time.Second // gRFC A56's
)

// condition is the condition of a backend and of the link to it.
type condition struct {
	up     bool
	sick   bool // reports NOT_SERVING
	hang   bool
	answer codes.Code
	link   Link
	// since is when the backend was last unreachable or last changed.
	since time.Time
	// turned is when the backend last changed how it answers calls.
	turned time.Time
	// proven is when a call to the backend first succeeded after a failure.
	proven time.Time
	// shown is when a call succeeded in a later interval. The interval in which a priority was
	// emptied does not count.
	shown time.Time
	// reset is when the connections of the backend were last reset during calls.
	reset time.Time
	// failed is when a call to the backend last failed, and answered is when one last succeeded.
	failed, answered time.Time
	// ended has how the last attempts at this backend ended, and underWay counts those that have
	// not ended.
	ended    []ending
	underWay int
	// ejected is when the log last reported the backend's ejection since the channel opened. It is
	// zero once the backend must be back.
	ejected time.Time
	// out reports whether the log has reported an ejection from any priority since then.
	out bool
}

// forget drops what calls have shown about the endpoint.
func (c *condition) forget() { c.proven, c.shown = time.Time{}, time.Time{} }

// look is as much of a condition as calls can see.
type look struct {
	connects, works bool
	answer          codes.Code
}

func (c *condition) look() look { return look{c.connects(), c.works(), c.answer} }

// suspect reports whether calls to the backend have failed so recently that it may still be
// ejected.
func (c *condition) suspect(d detection) bool {
	return time.Since(c.since) < d.rest() || time.Since(c.failed) < d.rest()
}

// connects reports whether a connection can be made and used, however calls are answered. This is
// all that gRFC A56 sees.
func (c *condition) connects() bool {
	return c.up && !c.sick && !c.link.Refuse && !c.link.LoseOut && !c.link.LoseIn && !c.link.Pause
}

func (c *condition) works() bool { return c.connects() && !c.hang && c.answer == codes.OK }

// World is one channel with its source, network and backends, in one synctest bubble.
type World struct {
	Log      *Log
	rand     *rand.Rand
	network  *Network
	dns      dns
	source   Source
	target   string
	shown    string // the target as it is in logs
	settings settings
	// events are those that the seed has not left out, with their weights.
	events []event
	// builders are the product's. They store answers while a channel is idle.
	builders   []resolver.Builder
	goroutines int // how many there were before the first channel

	mu         sync.Mutex
	cc         *grpc.ClientConn
	channel    *channel
	channels   []*channel // also closed ones, which may still get updates
	backends   map[string]*Backend
	addresses  []string
	conditions map[string]*condition
	truth      Truth   // the last truth that was published
	history    []Truth // those published before

	happened  time.Time // when the last event was
	known     Truth     // the channel's last update; nil if there was none
	knownOf   []int     // the source's priority of each priority in known
	before    Truth     // the update before known
	knownAt   time.Time
	repeated  int                  // how often the same update was accepted since the last event
	openedAt  time.Time            // when the channel was opened
	lastTold  time.Time            // when any channel was last updated while the source worked
	gone      map[string]time.Time // addresses that were removed from the channel, and when
	ever      map[string]bool      // addresses that any channel has had
	announced string               // the last log line before an update

	faulty    string // what is wrong with the source; "" for nothing
	wellSince time.Time
	changedAt time.Time // when the source last changed
	lowest    int       // the priority in use when the world was last quiet; -1 if there was none
	vital     []string  // the endpoints of that priority and of those above it
	disagrees bool      // the channel's update is not what the source has
	divided   bool      // the second management server was in use for too long
	detected  time.Time // when the channel's outlier detection last changed
	phased    time.Time // until then, ejected endpoints of some priority may come back without a log line
	checking  bool      // calls pause
	calls     Calls
	link      Link   // the link to a backend that works
	pair      *pair  // the pair of faults; nil in other worlds
	judge     *judge // nil in other worlds
	marked    marked // what the world has reached
	// dialFailed is when the last connection attempt to each backend failed.
	dialFailed map[string]time.Time
}

// Calls counts how calls ended, the product's failovers, and the checks in quiet times.
type Calls struct{ Made, Answered, Failed, Waited, Failovers, Checks int }

func (c Calls) String() string {
	return fmt.Sprintf("%d calls: %d answered, %d failed, %d were never sent; %d failovers; %d checks in quiet periods", c.Made, c.Answered, c.Failed, c.Waited, c.Failovers, c.Checks)
}

// nobody is an address without a backend.
const nobody = "10.0.1.1:443"

// rand returns the random generator of the world. Each pair of faults has a different one.
func (c Config) rand(seed uint64) *rand.Rand {
	own := uint64(0)
	if c.Pair != "" {
		h := fnv.New64a()
		_, _ = h.Write([]byte(c.Pair)) // a hash never fails
		own = h.Sum64()
	}
	return rand.New(rand.NewPCG(seed, own)) //nolint:gosec // draws a schedule of faults, not a secret
}

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
	w.settings.near = near // the preference depends on the localities of the source
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
	if config.Pair == "" {
		w.breakSource(kind)
	}
	return w, w.dial()
}

// breakSource lets the source of some channels fail before they open, so that they wait for their
// first answer. Only a list of sources waits for one of them while another has answered.
func (w *World) breakSource(kind string) {
	if kind == "mixed" && w.rand.IntN(2) == 0 || kind != "mixed" && w.rand.IntN(4) == 0 {
		w.failSource()
	}
}

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

// dial opens a channel, and from then on drops the updates of the one before.
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

// isOpen reports whether a channel is the world's and does not close.
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

// detects reports whether the channel detects outliers in any priority. The caller holds the lock.
func (w *World) detects() bool { return w.known.detects() }

// rest is how long changes may go on after settleTime. The caller holds the lock.
func (w *World) rest() time.Duration {
	longest := time.Duration(0)
	for _, tier := range w.known {
		longest = max(longest, tier.detection().rest())
	}
	return w.settings.rest() + longest
}

// settleTime is how long it takes, at most, until the world as it is now has settled. The caller
// holds the lock.
func (w *World) settleTime() time.Duration {
	wait := w.settings.patience(max(len(w.truth), len(w.known)))
	for _, c := range w.conditions {
		if c.hang && c.link.LoseIn != c.link.LoseOut {
			// When the deadlines of calls pass, the server resets their streams, which keepalive
			// takes for activity.
			return 2 * wait // the deadline of an earlier call, and the usual time
		}
	}
	return wait
}
