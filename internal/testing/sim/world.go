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

	_ "github.com/understudy-lb/understudy/discovery/file" // which nothing else here names
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// What the channel of a world is made with. The rules reckon with these.
const (
	serviceConfig    = `{"healthCheckConfig": {"serviceName": ""}}`
	failoverTime     = 10 * time.Second // A56's
	keepaliveTime    = 20 * time.Second
	keepaliveTimeout = 5 * time.Second
	longestBackoff   = 12 * time.Second // of maxBackoff, with gRPC's jitter
	maxBackoff       = 10 * time.Second
	attemptTime      = 20 * time.Second // how long one attempt to connect may take
	hangTime         = 5 * time.Second  // the deadline of calls that are to notice that a server hangs
)

// condition is how a backend and the way to it are.
type condition struct {
	up     bool
	sick   bool // NOT_SERVING
	hang   bool
	answer codes.Code
	link   Link
	// since is when the backend could last not be reached, or changed.
	since time.Time
	// turned is when it last was another in the eyes of a call.
	turned time.Time
	// proven is when a call to it succeeded, the first one since one failed.
	proven time.Time
	// shown is when one did after that, in a later interval: what comes in the interval in which a priority
	// was emptied does not count.
	shown time.Time
	// reset is when its connections were last reset with calls under way.
	reset time.Time
	// failed and answered are when a call to it failed last, and when one did not.
	failed, answered time.Time
	// ended is how attempts of calls ended that went there, the last one last, and underWay is
	// how many have not.
	ended    []ending
	underWay int
	// ejected is when the log said so last, since the channel was opened; zero once it must
	// have come back.
	ejected time.Time
	// out is whether it has ever said so since then, of whichever priority.
	out bool
}

// forget forgets what calls have shown of the endpoint.
func (c *condition) forget() { c.proven, c.shown = time.Time{}, time.Time{} }

// look is what of a condition a call can tell.
type look struct {
	connects, works bool
	answer          codes.Code
}

func (c *condition) look() look { return look{c.connects(), c.works(), c.answer} }

// suspect says whether calls to the backend may have failed so lately that it is still
// ejected.
func (c *condition) suspect(d detection) bool {
	return time.Since(c.since) < d.rest() || time.Since(c.failed) < d.rest()
}

// connects says whether a connection can be made and used, whatever the calls on it
// are answered: this is what A56 sees.
func (c *condition) connects() bool {
	return c.up && !c.sick && !c.link.Refuse && !c.link.LoseOut && !c.link.LoseIn
}

// works says whether a call is answered as it should be.
func (c *condition) works() bool { return c.connects() && !c.hang && c.answer == codes.OK }

// World is one channel with its source, its network and its backends, and what
// becomes of them. It lives in one bubble of testing/synctest.
type World struct {
	Log     *Log
	rand    *rand.Rand
	network *Network
	dns     dns
	source  Source
	target  string
	shown   string // the target as it is shown
	// settings are the channel's options.
	settings settings
	// builders are the product's. What is kept while a channel is idle is kept by them.
	builders   []resolver.Builder
	goroutines int // before there was a channel

	mu         sync.Mutex
	cc         *grpc.ClientConn
	channel    *channel
	channels   []*channel // all that there ever were: one that is closed may still be updated
	backends   map[string]*Backend
	addresses  []string
	conditions map[string]*condition
	truth      Truth   // what was published last
	history    []Truth // what was published before

	happened  time.Time // the last event
	known     Truth     // what the channel was told last, nil if nothing
	knownOf   []int     // the source's priority that each of them belongs to
	before    Truth     // what it was told before that
	knownAt   time.Time
	repeated  int                  // how often it was told the same, and took it, since anything happened
	openedAt  time.Time            // when the channel was
	lastTold  time.Time            // any channel, while the source worked
	gone      map[string]time.Time // addresses that the channel was told to leave
	ever      map[string]bool      // addresses that a channel was told of
	announced string               // what the log said before an update

	faulty    string // what is wrong with the source, "" for nothing
	wellSince time.Time
	changedAt time.Time // when the source last had something new to say
	lowest    int       // the priority that was in use when all was quiet last; -1 for none
	vital     []string  // the endpoints of that and of those above
	disagrees bool      // the channel was told something else
	divided   bool      // the second management server was asked for too long
	detected  time.Time // when the channel was last told of another outlier detection
	phased    time.Time // until when the log has said of some priority that endpoints may be back
	checking  bool      // the traffic pauses
	calls     Calls
	link      Link   // to a backend that is well
	pair      *pair  // what a world of pairs is made of, else nil
	judge     *judge // likewise
}

// Calls counts what became of the calls, the failovers that the product counted, and how
// often the right priority and the shares were checked.
type Calls struct{ Made, Answered, Failed, Waited, Failovers, Checks int }

// String returns the counts in a sentence.
func (c Calls) String() string {
	return fmt.Sprintf("%d calls: %d answered, %d failed, %d waited in vain; %d failovers; checked %d times in quiet", c.Made, c.Answered, c.Failed, c.Waited, c.Failovers, c.Checks)
}

// nobody is an address where there never is a backend.
const nobody = "10.0.1.1:443"

// rand returns what a world is drawn from: of each pair its own.
func (c Config) rand(seed uint64) *rand.Rand {
	own := uint64(0)
	if c.Pair != "" {
		h := fnv.New64a()
		_, _ = h.Write([]byte(c.Pair)) // which never fails
		own = h.Sum64()
	}
	return rand.New(rand.NewPCG(seed, own)) //nolint:gosec // a schedule of faults, not a secret
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
		goroutines: len(goroutines()),
	}
	living.Store(w)
	w.network = NewNetwork(w.Log.Event)
	w.addBackends()
	var near nearby
	if config.Pair == "" {
		near = newNearby(w.rand)
	}
	w.settings.near = near // where a client is, and what is there, belong together
	w.truth = w.newTruth()
	kind := config.Kind
	if drawn := kinds[w.rand.IntN(len(kinds))]; kind == "" {
		kind = drawn
	}
	w.source = w.newSource(kind, config)
	w.settings = newSettings(w.rand)
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
	w.Log.Event("seed %d; target %s; %v", seed, w.target, w.truth)
	if s := part[*edsSource](w); s != nil {
		if err := s.open(neighbour); err != nil {
			return w, err
		}
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

// dial opens the channel, and forgets what the one before was told.
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
		grpc.WithContextDialer(w.network.Dial),
		grpc.WithStatsHandler(observer),
		grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff},
			MinConnectTimeout: attemptTime,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout, PermitWithoutStream: true}))
	if err != nil {
		return err
	}
	cc.Connect()
	w.mu.Lock()
	w.cc = cc
	w.mu.Unlock()
	return nil
}

func (w *World) channelNow() *channel {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.channel
}

// detects says whether the channel was told to detect outliers anywhere. The lock is held.
func (w *World) detects() bool { return w.known.detects() }

// rest is how long after settleTime nothing changes by itself any more. The lock is held.
func (w *World) rest() time.Duration {
	longest := time.Duration(0)
	for _, tier := range w.known {
		longest = max(longest, tier.detection().rest())
	}
	return w.settings.rest() + longest
}

// settleTime is the longest patience for what is known. The lock is held.
func (w *World) settleTime() time.Duration {
	wait := w.settings.patience(max(len(w.truth), len(w.known)))
	for _, c := range w.conditions {
		if c.hang && c.link.LoseIn != c.link.LoseOut {
			// The server resets the streams of calls when their time is over, which keepalive takes for a
			// sign of life.
			return 2 * wait // the time of a call from before, and all the rest
		}
	}
	return wait
}
