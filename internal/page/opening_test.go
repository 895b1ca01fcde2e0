package page

import (
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/scripttest"
)

type signalingSource struct {
	scripttest.Source
	started chan struct{}
}

func (*signalingSource) Check(bool) error { return nil }

func (s *signalingSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	select {
	case s.started <- struct{}{}:
	default: // a signal is already pending
	}
	return s.Source.Start(r)
}

// The page is requested while channels open and close. The race detector must not find a data race.
func TestPageWhileChannelsOpen(t *testing.T) {
	done := make(chan struct{})
	var viewer sync.WaitGroup
	viewer.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				get(t, "")
			}
		}
	})
	last := make(chan struct{}, 1)
	builder := given.NewBuilder("story", func(*discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Name: "a", Source: &scripttest.Source{}}, {Name: "b", Source: &signalingSource{started: last}}}, nil
	})
	for range 50 {
		cc, err := grpc.NewClient("story:///opened", grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		cc.Connect()
		<-last
		cc.Close()
	}
	close(done)
	viewer.Wait()
}
