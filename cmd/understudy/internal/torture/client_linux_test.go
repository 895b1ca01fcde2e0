//go:build torture

package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/kubernetes"
)

type channelConfig struct {
	Target      string
	Recommended bool // whether to use Recommended instead of the zero value of Options
	Retries     bool
}

type clientConfig struct {
	Channels  []channelConfig
	APIServer string
	Seed      uint64
}

const (
	plainDeadline        = 3 * time.Second
	waitForReadyDeadline = 45 * time.Second
	streamDeadline       = 6 * time.Second
)

const (
	plainCall        = "plain"
	waitForReadyCall = "patient"
	streamCall       = "stream"
)

// record is a line in the output of a process. It describes a call that has ended, or another
// event.
type record struct {
	Kind    string        `json:"k"`
	Channel int           `json:"c"`
	Start   time.Duration `json:"s,omitempty"`
	Sent    time.Duration `json:"x,omitempty"` // when the last attempt was sent, or 0
	End     time.Duration `json:"e,omitempty"`
	To      string        `json:"to,omitempty"` // the endpoint of the last attempt
	Failed  bool          `json:"f,omitempty"`
	Code    string        `json:"code,omitempty"`
	Text    string        `json:"m,omitempty"`

	Delay      time.Duration `json:"d,omitempty"` // in a pulse: the longest delay of a timer
	Heap       uint64        `json:"heap,omitempty"`
	Goroutines int           `json:"g,omitempty"`
	Files      int           `json:"files,omitempty"`
}

const (
	kindPulse = "pulse"
	kindInUse = "in use"
	kindEnd   = "end" // all channels are closed; Text lists the leaked goroutines
)

type client struct {
	config            clientConfig
	api               *http.Transport
	conns             []*grpc.ClientConn
	callers           sync.WaitGroup
	ctx               context.Context //nolint:containedctx // ends the callers
	cancel            context.CancelFunc
	ignoredGoroutines goleak.Option
	initialFiles      int // number of files that were open before the first channel
}

func runClient() error {
	c := &client{api: &http.Transport{}}
	if err := readConfig(&c.config); err != nil {
		return err
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	go measureDelay(emit, nil)
	c.initialFiles = openFiles()
	return readCommands(func(command string) error {
		switch command {
		case "open":
			return c.open()
		case "close":
			return c.close()
		}
		return fmt.Errorf("unknown command %q", command)
	})
}

// outputMu prevents two lines of output from being mixed.
var outputMu sync.Mutex

func emit(r record) {
	line, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	outputMu.Lock()
	defer outputMu.Unlock()
	fmt.Printf("%s\n", line)
}

func (c *client) open() error {
	c.ignoredGoroutines = goleak.IgnoreCurrent()
	for i, channel := range c.config.Channels {
		var o understudy.Options
		if channel.Recommended {
			o = understudy.Recommended()
		}
		if channel.Retries {
			o.RetryMethods = []string{unaryMethod}
		}
		if strings.Contains(channel.Target, "kubernetes:") {
			o.Sources = []discovery.SourceOption{kubernetes.WithTransport(c.config.APIServer, c.api)}
		}
		o.PriorityChanged = func(p understudy.PriorityInUse) {
			emit(record{Kind: kindInUse, Channel: i, Text: fmt.Sprintf("%s %v: %s", p.Name, p.State, p.Why)})
		}
		cc, err := understudy.NewClient(channel.Target, o, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStatsHandler(observer{}))
		if err != nil {
			return err
		}
		c.conns = append(c.conns, cc)
		r := rand.New(rand.NewPCG(c.config.Seed, uint64(i)))
		c.callPeriodically(125*time.Millisecond, i, caller{plainCall, plainDeadline, cc, time.Duration(r.IntN(60)) * time.Millisecond})
		c.callPeriodically(2*time.Second, i, caller{waitForReadyCall, waitForReadyDeadline, cc, time.Duration(r.IntN(60)) * time.Millisecond})
		c.callers.Go(func() { c.stream(cc, i, rand.New(rand.NewPCG(c.config.Seed, uint64(i)))) })
	}
	return nil
}

func (c *client) close() error {
	c.cancel()
	c.callers.Wait()
	for _, cc := range c.conns {
		if err := cc.Close(); err != nil {
			return err
		}
	}
	c.conns = nil
	var leaked error
	for deadline := now() + leakTimeout; now() < deadline; {
		c.api.CloseIdleConnections()
		if leaked = goleak.Find(c.ignoredGoroutines); leaked == nil { // Find itself waits for up to a second
			break
		}
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	r := record{Kind: kindEnd, Heap: memory.HeapAlloc, Goroutines: runtime.NumGoroutine(), Files: openFiles() - c.initialFiles}
	if leaked != nil {
		r.Text = leaked.Error()
	}
	emit(r)
	return nil
}

// leakTimeout limits how long goroutines may take to end. Kubernetes watches end only after 30 s.
const leakTimeout = 90 * time.Second

func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return len(entries)
}

type caller struct {
	kind     string
	deadline time.Duration
	cc       *grpc.ClientConn
	delay    time.Duration
}

// callPeriodically makes a call at each interval, even if earlier calls have not ended.
func (c *client) callPeriodically(interval time.Duration, channel int, spec caller) {
	c.callers.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.callers.Go(func() { c.unary(channel, spec) })
			case <-c.ctx.Done():
				return
			}
		}
	})
}

func (c *client) unary(channel int, spec caller) {
	a, start := &attempt{}, now()
	ctx, cancel := context.WithTimeout(context.WithValue(c.ctx, attemptKey{}, a), spec.deadline)
	defer cancel()
	var answer wrapperspb.StringValue
	err := spec.cc.Invoke(ctx, unaryMethod, durationpb.New(spec.delay), &answer, grpc.WaitForReady(spec.kind == waitForReadyCall))
	c.recordCall(channel, spec.kind, start, a, err)
}

func (c *client) recordCall(channel int, kind string, start time.Duration, a *attempt, err error) {
	r := record{Kind: kind, Channel: channel, Start: start, End: now()}
	if c.ctx.Err() != nil {
		return // the client has canceled the call
	}
	a.mu.Lock()
	r.To, r.Sent = a.endpoint, a.sent
	a.mu.Unlock()
	if err != nil {
		r.Failed, r.Code, r.Text = true, status.Code(err).String(), status.Convert(err).Message()
	}
	emit(r)
}

func (c *client) stream(cc *grpc.ClientConn, channel int, r *rand.Rand) {
	for c.ctx.Err() == nil {
		a := &attempt{}
		start := now()
		ctx, cancel := context.WithTimeout(context.WithValue(c.ctx, attemptKey{}, a), streamDeadline)
		err := runStream(ctx, cc, 1+r.IntN(15))
		cancel()
		c.recordCall(channel, streamCall, start, a, err)
		pause(c.ctx, 200*time.Millisecond)
	}
}

func runStream(ctx context.Context, cc *grpc.ClientConn, n int) error {
	s, err := cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, streamMethod)
	if err != nil {
		return err
	}
	var answer wrapperspb.StringValue
	for range n {
		if err := s.SendMsg(durationpb.New(0)); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err := s.RecvMsg(&answer); err != nil {
			return err
		}
		pause(ctx, 200*time.Millisecond)
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	if err := s.RecvMsg(&answer); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

type attempt struct {
	mu       sync.Mutex
	endpoint string
	sent     time.Duration
}

type attemptKey struct{}

// observer records when, and to which endpoint, the attempts of a call are sent.
type observer struct{}

func (observer) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (observer) HandleRPC(ctx context.Context, s stats.RPCStats) {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch s := s.(type) {
	case *stats.Begin:
		a.endpoint, a.sent = "", 0
	case *stats.OutHeader:
		a.endpoint, a.sent = s.RemoteAddr.String(), now()
	}
}

func (observer) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (observer) HandleConn(context.Context, stats.ConnStats) {}

// measureDelay reports a pulse every half second. A pulse is a record with the longest delay of a
// timer since the last pulse, which shows how busy the machine is.
func measureDelay(report func(record), done <-chan struct{}) {
	const tick = 10 * time.Millisecond
	timer := time.NewTimer(tick)
	for last, longest, lastPulse := now(), time.Duration(0), now(); ; {
		select {
		case <-timer.C:
		case <-done:
			return
		}
		current := now()
		longest = max(longest, current-last-tick)
		if last = current; current-lastPulse > 500*time.Millisecond {
			report(record{Kind: kindPulse, End: current, Delay: longest, Goroutines: runtime.NumGoroutine()})
			lastPulse, longest = current, 0
		}
		timer.Reset(tick)
	}
}
