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
	serviceConfig = `{"healthCheckConfig": {"serviceName": ""}, "retryThrottling": {"maxTokens": 100, "tokenRatio": 0.1}, "methodConfig": [{"name": [{"service": "sim.Backend", "method": "Work"}],
		"retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.05s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`
	defaultFailoverTimeout = 10 * time.Second
)

type condition struct {
	up                 bool
	notServing         bool
	hang               bool
	code               codes.Code
	link               Link
	changedAt          time.Time
	behaviourChangedAt time.Time
	firstSuccess       time.Time
	// laterSuccess is when a call first succeeded that was sent at least one interval of outlier
	// detection after firstSuccess.
	laterSuccess time.Time
	resetAt      time.Time
	// lastFailure is when a call last failed. lastSuccess is when a call last succeeded that was
	// sent after lastFailure.
	lastFailure, lastSuccess time.Time
	inFlight                 int
	wasEjected               bool
}

func (c *condition) forgetSuccesses() { c.firstSuccess, c.laterSuccess = time.Time{}, time.Time{} }

type behaviour struct {
	reachable, works bool
	code             codes.Code
}

func (c *condition) behaviour() behaviour { return behaviour{c.reachable(), c.works(), c.code} }

func (c *condition) mayBeEjected() bool {
	return time.Since(c.changedAt) < maxEjectedTime || time.Since(c.lastFailure) < maxEjectedTime
}

func (c *condition) reachable() bool {
	return c.up && !c.notServing && !c.link.Refuse && !c.link.LoseOut && !c.link.LoseIn && !c.link.Pause
}

func (c *condition) works() bool { return c.reachable() && !c.hang && c.code == codes.OK }

// World is a simulation of one channel with its source, network and backends. It runs in one
// synctest bubble.
type World struct {
	Log        *Log
	rand       *rand.Rand
	network    *Network
	source     Source
	target     string
	targetText string
	settings   settings
	callEach   time.Duration // longest time between two calls
	events     []event
	builders   []resolver.Builder
	goroutines int

	mu         sync.Mutex
	cc         *grpc.ClientConn
	channel    *channel
	channels   []*channel // includes closed ones, which may still get updates
	backends   map[string]*Backend
	addresses  []string
	conditions map[string]*condition
	truth      EndpointSet
	history    []EndpointSet

	lastEvent     time.Time
	knownTruth    EndpointSet // from the channel's last update; nil before the first
	previousTruth EndpointSet
	updatedAt     time.Time
	repeated      int
	openedAt      time.Time
	lastReceived  time.Time // only while the source worked
	removedAt     map[string]time.Time
	everKnown     map[string]bool // from the updates of all channels
	announced     []string        // sizes of updates that the log has announced at this instant
	announcedAt   time.Time

	sourceFault          string // describes the fault; "" while the source works
	sourceWorksSince     time.Time
	sourceChangedAt      time.Time
	priorityInUse        int      // at the last check, or -1 if that wasn't certain
	vitalAddresses       []string // the priority in use and everything above it
	contentDiffers       bool
	secondServerReported bool // checkServers has reported a connection
	checking             bool
	calls                Calls
	link                 Link
	load                 *load
	pair                 *pair  // nil unless Config.Pair is set
	judge                *judge // nil unless pair is set
}

type Calls struct{ Made, Answered, Failed, Waited, Failovers, Checks int }

func (c Calls) String() string {
	return fmt.Sprintf("%d calls: %d answered, %d failed, %d were never sent; %d failovers; %d checks in quiet periods", c.Made, c.Answered, c.Failed, c.Waited, c.Failovers, c.Checks)
}

const deadAddress = "10.0.1.1:443"

func (c Config) rand(seed uint64) *rand.Rand {
	stream := uint64(0)
	if c.Pair != "" {
		h := fnv.New64a()
		_, _ = h.Write([]byte(c.Pair))
		stream = h.Sum64()
	}
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // draws a schedule of faults, not a secret
}

func newWorld(seed uint64, config Config) (*World, error) {
	w := &World{
		Log:        newLog(),
		rand:       config.rand(seed),
		callEach:   time.Second,
		backends:   make(map[string]*Backend),
		conditions: make(map[string]*condition),
		removedAt:  make(map[string]time.Time),
		everKnown:  make(map[string]bool),
		goroutines: len(goroutines()),
	}
	currentWorld.Store(w)
	w.network = NewNetwork(w.Log.Event)
	w.addBackends()
	kind := w.draw(config)
	u, err := url.Parse(w.target)
	if err != nil {
		return w, err
	}
	w.targetText, w.sourceChangedAt = resolver.Target{URL: *u}.String(), time.Now()
	w.builders = given.Builders(append(w.source.Options(), given.Set("ServiceConfig", serviceConfig))...)
	w.Log.Event("seed %d; target %s; %v; %v", seed, w.target, w.settings.timing, w.truth)
	if s := sourceOf[*edsSource](w); s != nil {
		if err := s.open(neighbour); err != nil {
			return w, err
		}
	}
	if config.Pair == "" {
		w.sometimesFailSource(kind)
	}
	return w, w.dial()
}

func (w *World) draw(config Config) (kind string) {
	w.truth = w.newTruth()
	kind = config.Kind
	if drawn := kinds[w.rand.IntN(len(kinds))]; kind == "" {
		kind = drawn
	}
	w.source = w.newSource(kind, config)
	w.settings = newSettings(w.rand)
	w.events = drawEvents(w.rand)
	if config.Pair != "" {
		w.choosePair(config.Pair)
	}
	if config.Load {
		w.settings.overflow = true
	}
	if config.PickFirst {
		w.settings.choosePickFirst()
	}
	w.target = w.settings.addTo(w.source.Target())
	return kind
}

// sometimesFailSource fails the source a quarter of the time, or half of the time if there are
// several. Only in that case may a channel have to wait for one source when another has already
// answered.
func (w *World) sometimesFailSource(kind string) {
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
		w.conditions[address] = &condition{up: true, changedAt: time.Now()}
	}
	w.conditions[deadAddress] = &condition{}
}

func (w *World) dial() error {
	// From here on, updates of the previous channel are ignored.
	c := newChannel(w)
	observer := &observer{onSend: w.sentTo, onEnd: w.attemptEnded, onFailover: c.checkFailover}
	var observed []resolver.Builder
	for _, b := range w.builders {
		observed = append(observed, &observingBuilder{b, c})
	}
	w.mu.Lock()
	w.channels = append(w.channels, c)
	if w.channel != nil {
		w.calls.Failovers += int(w.channel.failovers.Load())
	}
	w.channel, w.knownTruth, w.previousTruth, w.openedAt = c, nil, nil, time.Now()
	clear(w.removedAt)
	for _, condition := range w.conditions {
		condition.wasEjected = false
	}
	w.mu.Unlock()
	cc, err := grpc.NewClient(w.target,
		grpc.WithResolvers(observed...),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(w.network.Dial),
		grpc.WithStatsHandler(observer),
		grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: w.settings.maxBackoff},
			MinConnectTimeout: minConnectTimeout,
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

func (w *World) currentChannel() *channel {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.channel
}

// maxRestTime returns how long ejections, shares below 1, failback delays and slow start may last
// after settleTime. The caller holds the lock.
func (w *World) maxRestTime() time.Duration {
	rest := w.settings.slowStart + w.maxTimeBelowOne()
	if w.settings.detects {
		rest += maxEjectedTime
	}
	return rest
}

// settleTime must be called with the lock held.
func (w *World) settleTime() time.Duration {
	wait := w.settings.maxFailoverTime(max(len(w.truth), len(w.knownTruth)))
	for _, c := range w.conditions {
		if c.hang && c.link.LoseIn != c.link.LoseOut {
			// When a hanging call reaches its deadline, the server resets its stream. If packets
			// are only lost in the other direction, keepalive takes the reset for activity, so it
			// detects the loss later.
			return 2 * wait // the first half is for the deadline of an earlier call
		}
	}
	return wait
}
