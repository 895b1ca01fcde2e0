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
	Recommended bool // otherwise the zero value of Options
	Retries     bool
}

type clientConfig struct {
	Channels  []channelConfig
	APIServer string
	Seed      uint64
}

const (
	plainDeadline   = 3 * time.Second
	patientDeadline = 45 * time.Second
	streamDeadline  = 6 * time.Second
)

const (
	plain   = "plain"
	patient = "patient"
	stream  = "stream"
)

// record is a line in the output of a process. It describes a call that has ended, or an event of
// another kind.
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

	Delay      time.Duration `json:"d,omitempty"` // for a pulse: the longest delay of a timer
	Heap       uint64        `json:"heap,omitempty"`
	Goroutines int           `json:"g,omitempty"`
	Files      int           `json:"files,omitempty"`
}

const (
	pulse   = "pulse"
	inUse   = "in use"
	leftOff = "end" // all channels are closed; Text lists the leaked goroutines
)

type client struct {
	config  clientConfig
	api     *http.Transport
	conns   []*grpc.ClientConn
	callers sync.WaitGroup
	ctx     context.Context //nolint:containedctx // ends the callers
	cancel  context.CancelFunc
	own     goleak.Option
	files   int // files open before the first channel
}

func runClient() error {
	c := &client{api: &http.Transport{}}
	if err := configured(&c.config); err != nil {
		return err
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	go measureDelay(emit, nil)
	c.files = openFiles()
	return obey(func(command string) error {
		switch command {
		case "open":
			return c.open()
		case "close":
			return c.close()
		}
		return fmt.Errorf("unknown command %q", command)
	})
}

// output prevents two lines of a process from being mixed.
var output sync.Mutex

func emit(r record) {
	line, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	fmt.Printf("%s\n", line)
}

func (c *client) open() error {
	c.own = goleak.IgnoreCurrent()
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
			emit(record{Kind: inUse, Channel: i, Text: fmt.Sprintf("%s %v: %s", p.Name, p.State, p.Why)})
		}
		cc, err := understudy.NewClient(channel.Target, o, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStatsHandler(observer{}))
		if err != nil {
			return err
		}
		c.conns = append(c.conns, cc)
		r := rand.New(rand.NewPCG(c.config.Seed, uint64(i)))
		c.every(125*time.Millisecond, i, caller{plain, plainDeadline, cc, time.Duration(r.IntN(60)) * time.Millisecond})
		c.every(2*time.Second, i, caller{patient, patientDeadline, cc, time.Duration(r.IntN(60)) * time.Millisecond})
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
	for end := now() + leakPatience; now() < end; {
		c.api.CloseIdleConnections()
		if leaked = goleak.Find(c.own); leaked == nil { // Find itself waits for up to a second
			break
		}
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	r := record{Kind: leftOff, Heap: memory.HeapAlloc, Goroutines: runtime.NumGoroutine(), Files: openFiles() - c.files}
	if leaked != nil {
		r.Text = leaked.Error()
	}
	emit(r)
	return nil
}

// leakPatience limits how long goroutines may take to end. Kubernetes watches end only after 30 s.
const leakPatience = 90 * time.Second

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
	takes    time.Duration
}

// every makes a call at each interval, even while earlier ones wait.
func (c *client) every(interval time.Duration, channel int, by caller) {
	c.callers.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.callers.Go(func() { c.unary(channel, by) })
			case <-c.ctx.Done():
				return
			}
		}
	})
}

func (c *client) unary(channel int, by caller) {
	a, start := &attempt{}, now()
	ctx, cancel := context.WithTimeout(context.WithValue(c.ctx, attemptKey{}, a), by.deadline)
	defer cancel()
	var answer wrapperspb.StringValue
	err := by.cc.Invoke(ctx, unaryMethod, durationpb.New(by.takes), &answer, grpc.WaitForReady(by.kind == patient))
	c.ended(channel, by.kind, start, a, err)
}

func (c *client) ended(channel int, kind string, start time.Duration, a *attempt, err error) {
	r := record{Kind: kind, Channel: channel, Start: start, End: now()}
	if c.ctx.Err() != nil {
		return // the client has canceled the call
	}
	a.mu.Lock()
	r.To, r.Sent = a.to, a.sent
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
		err := converse(ctx, cc, 1+r.IntN(15))
		cancel()
		c.ended(channel, stream, start, a, err)
		pause(c.ctx, 200*time.Millisecond)
	}
}

func converse(ctx context.Context, cc *grpc.ClientConn, n int) error {
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
	mu   sync.Mutex
	to   string
	sent time.Duration
}

type attemptKey struct{}

// observer records when and to which endpoint attempts are sent.
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
		a.to, a.sent = "", 0
	case *stats.OutHeader:
		a.to, a.sent = s.RemoteAddr.String(), now()
	}
}

func (observer) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (observer) HandleConn(context.Context, stats.ConnStats) {}

// measureDelay passes on a pulse every half second: a record with the longest delay of a timer
// since the last pulse. It shows how busy the machine is.
func measureDelay(pass func(record), ends <-chan struct{}) {
	const tick = 10 * time.Millisecond
	timer := time.NewTimer(tick)
	for last, longest, told := now(), time.Duration(0), now(); ; {
		select {
		case <-timer.C:
		case <-ends:
			return
		}
		at := now()
		longest = max(longest, at-last-tick)
		if last = at; at-told > 500*time.Millisecond {
			pass(record{Kind: pulse, End: at, Delay: longest, Goroutines: runtime.NumGoroutine()})
			told, longest = at, 0
		}
		timer.Reset(tick)
	}
}
