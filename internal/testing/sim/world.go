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

	_ "github.com/understudy-lb/understudy/discovery/file"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

const (
	serviceConfig = `{"healthCheckConfig": {"serviceName": ""}}`
	failoverTime  = 10 * time.Second // gRFC A56's
)

type condition struct {
	up     bool
	sick   bool
	hang   bool
	answer codes.Code
	link   Link
	// since is when the backend was last unreachable or last changed.
	since  time.Time
	turned time.Time
	// proven is when a call to the backend first succeeded after a failure.
	proven time.Time
	// shown is when a call succeeded in a later interval. It does not count the interval in which
	// all endpoints were ejected.
	shown time.Time
	// reset is when the connections of the backend were last reset during calls.
	reset time.Time
	// failed is when a call to the backend last failed. answered is when one last succeeded.
	failed, answered time.Time
	// ended has the results of the last attempts, and underWay counts the attempts that have not
	// ended.
	ended    []ending
	underWay int
	ejected  time.Time // when an ejection was last logged; zero once the backend must be back
	// out reports whether an ejection has been logged since the channel opened.
	out bool
}

func (c *condition) forget() { c.proven, c.shown = time.Time{}, time.Time{} }

// look is the part of a condition that calls can observe.
type look struct {
	connects, works bool
	answer          codes.Code
}

func (c *condition) look() look { return look{c.connects(), c.works(), c.answer} }

// suspect reports whether the backend may still be ejected because of recent failures.
func (c *condition) suspect(d detection) bool {
	return time.Since(c.since) < d.rest() || time.Since(c.failed) < d.rest()
}

func (c *condition) connects() bool {
	return c.up && !c.sick && !c.link.Refuse && !c.link.LoseOut && !c.link.LoseIn && !c.link.Pause
}

func (c *condition) works() bool { return c.connects() && !c.hang && c.answer == codes.OK }

// World is a simulation of one channel with its source, network and backends. It runs in one
// synctest bubble.
type World struct {
	Log      *Log
	rand     *rand.Rand
	network  *Network
	dns      dns
	source   Source
	target   string
	shown    string
	settings settings
	// events has the chosen events with their weights.
	events []event
	// builders are the library's. They store answers while a channel is idle.
	builders   []resolver.Builder
	goroutines int

	mu         sync.Mutex
	cc         *grpc.ClientConn
	channel    *channel
	channels   []*channel // includes closed ones, which may still get updates
	backends   map[string]*Backend
	addresses  []string
	conditions map[string]*condition
	truth      Truth
	history    []Truth

	happened     time.Time
	known        Truth // the last update of the channel; nil before the first one
	knownOf      []int // for each priority in known, its index in the source
	before       Truth
	knownAt      time.Time
	repeated     int
	openedAt     time.Time
	lastReceived time.Time            // the last update of any channel while the source worked
	gone         map[string]time.Time // when each address was removed from the channel
	ever         map[string]bool      // addresses that any channel had
	announced    string

	faulty     string // the current fault of the source; "" for none
	wellSince  time.Time
	changedAt  time.Time
	lowest     int // the priority in use at the last check; -1 if there was none
	vital      []string
	disagrees  bool
	divided    bool      // a connection to the second management server was reported
	detected   time.Time // when the channel's outlier detection last changed
	phased     time.Time // until then, ejected endpoints may come back without a log line
	checking   bool
	calls      Calls
	link       Link
	pair       *pair  // nil unless two faults occur together
	judge      *judge // nil unless pair is set
	marked     marked // what has been reached
	dialFailed map[string]time.Time
}

// Calls counts the results of calls, the failovers, and the checks.
type Calls struct{ Made, Answered, Failed, Waited, Failovers, Checks int }

func (c Calls) String() string {
	return fmt.Sprintf("%d calls: %d answered, %d failed, %d were never sent; %d failovers; %d checks in quiet periods", c.Made, c.Answered, c.Failed, c.Waited, c.Failovers, c.Checks)
}

const nobody = "10.0.1.1:443"

// rand returns a random generator. Each pair of faults has a different one.
func (c Config) rand(seed uint64) *rand.Rand {
	own := uint64(0)
	if c.Pair != "" {
		h := fnv.New64a()
		_, _ = h.Write([]byte(c.Pair))
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
	w.settings.near = near
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
	w.shown, w.changedAt = resolver.Target{URL: *u}.String(), time.Now()
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

// breakSource makes the source of some channels fail before they open. A list of sources fails more
// often, because only there may a channel wait for one source after another has answered.
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

// dial opens a channel. Later updates of the previous channel are ignored.
func (w *World) dial() error {
	c := newChannel(w)
	observer := &observer{sentTo: w.sentTo, ended: w.attemptEnded, failover: c.failover}
	var overheard []resolver.Builder
	for _, b := range w.builders {
		overheard = append(overheard, &observingBuilder{b, c})
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

func (w *World) detects() bool { return w.known.detects() }

// rest returns how long ejections, failback delays and slow start may last after settleTime. The
// caller holds the lock.
func (w *World) rest() time.Duration {
	longest := time.Duration(0)
	for _, tier := range w.known {
		longest = max(longest, tier.detection().rest())
	}
	return w.settings.rest() + longest
}

// settleTime returns how long it may take after an event until the right priority is in use. The
// caller holds the lock.
func (w *World) settleTime() time.Duration {
	wait := w.settings.patience(max(len(w.truth), len(w.known)))
	for _, c := range w.conditions {
		if c.hang && c.link.LoseIn != c.link.LoseOut {
			// Calls hang, and packets are lost in one direction. When a call reaches its deadline,
			// the server resets its stream. Keepalive takes this for activity, and notices the lost
			// packets later.
			return 2 * wait // one for the deadline of an earlier call, and one as usual
		}
	}
	return wait
}
