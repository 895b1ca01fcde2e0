package overload

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
)

// FullDuplexCall answers each message with the priority that the backend belongs to.
func (b *backend) FullDuplexCall(s grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error {
	for {
		if _, err := s.Recv(); err != nil {
			return nil
		}
		if b.has(Hang) {
			<-s.Context().Done()
			return nil
		}
		time.Sleep(b.server.Service)
		if err := s.Send(&testpb.StreamingOutputCallResponse{Payload: &testpb.Payload{Body: []byte{byte(b.priority)}}}); err != nil {
			return err
		}
	}
}

// Ten clients have five streams each, which stay open for one to three minutes, and send a message a
// second on each. They cancel a stream without an answer for 5 s. At 60 s, the first priority fails
// for 30 s. A stream that its caller cancels is no sign of anything, so streams alone stay at a
// priority that hangs. They also return slowly, because a probe needs ten calls elsewhere.
func TestStreams(t *testing.T) {
	for _, row := range []struct {
		name  string
		fault Fault
		calls float64 // a second of each client beside its streams, with a deadline of 1 s
		lost  float64 // messages of each stream
	}{
		{"killed", Down, 0, 1.2},
		{"killed, with calls", Down, 5, 1.2},
		{"hangs", Hang, 0, 7},
		{"hangs, with calls", Hang, 5, 1.4},
	} {
		if !*whole {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			w := filled(World{Clients: 10, Load: 10 * row.calls, Length: 10 * time.Minute, Events: []Event{{From: time.Minute, To: 90 * time.Second, Server: all, Fault: row.fault}}})
			s := playStreams(t, w)
			lost, elsewhere := float64(s.lost)/50, s.elsewhere()
			t.Logf("%.2f messages lost for each stream; elsewhere %v %% in each half minute", lost, elsewhere)
			if lost > row.lost || elsewhere[19] > 20 {
				t.Errorf("%.2f messages are lost for each stream and %d %% go elsewhere at the end, want at most %v and 20 %%", lost, elsewhere[19], row.lost)
			}
		})
	}
}

type streamed struct {
	mu   sync.Mutex
	lost int
	at   [21][2]int // answers of each priority in each half minute
}

func (s *streamed) elsewhere() (percent []int) {
	for _, n := range s.at[:20] {
		percent = append(percent, 100*n[1]/max(1, n[0]+n[1]))
	}
	return percent
}

func playStreams(t *testing.T, w World) *streamed {
	s := &streamed{}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		listeners, stop := serveWorld(w, start)
		dial := grpc.WithContextDialer(network(w, start, listeners))
		var running sync.WaitGroup
		for client := range w.Clients {
			cc, err := recommended(w, grpc.WithTransportCredentials(insecure.NewCredentials()), dial)
			if err != nil {
				t.Fatal(err)
			}
			defer cc.Close()
			for stream := range 5 {
				running.Go(func() { s.run(w, start, cc, rand.New(rand.NewPCG(uint64(client), uint64(stream)))) })
			}
			if w.Load > 0 {
				running.Go(func() {
					drive(w, start, 1, uint64(client), &running, func(ctx context.Context, _ time.Duration) {
						healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{})
					})
				})
			}
		}
		running.Wait()
		stop()
		time.Sleep(time.Minute)
	})
	return s
}

// run keeps one stream open.
func (s *streamed) run(w World, start time.Time, cc *grpc.ClientConn, random *rand.Rand) {
	for time.Since(start) < w.Length {
		ctx, cancel := context.WithCancel(context.Background())
		stream, err := testpb.NewTestServiceClient(cc).FullDuplexCall(ctx)
		end := time.Now().Add(time.Minute + time.Duration(random.Int64N(int64(2*time.Minute))))
		for err == nil && time.Now().Before(end) && time.Since(start) < w.Length {
			err = s.exchange(stream, cancel, time.Since(start))
			time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
		}
		if err != nil {
			time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
		}
		cancel()
	}
}

func (s *streamed) exchange(stream grpc.BidiStreamingClient[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse], cancel func(), at time.Duration) error {
	timer := time.AfterFunc(5*time.Second, cancel)
	defer timer.Stop()
	err := stream.Send(&testpb.StreamingOutputCallRequest{})
	var answer *testpb.StreamingOutputCallResponse
	if err == nil {
		answer, err = stream.Recv()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.lost++
		return err
	}
	s.at[int(at/(30*time.Second))][answer.Payload.Body[0]]++
	return nil
}
