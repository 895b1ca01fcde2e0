package discovery_test

import (
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
)

type board struct {
	mu       sync.Mutex
	machines []string
	watchers map[chan struct{}]bool
}

func (b *board) setMachines(machines ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.machines = machines
	for changed := range b.watchers {
		select {
		case changed <- struct{}{}:
		default: // a wake-up is already pending
		}
	}
}

func (b *board) watch() (changed chan struct{}, stop func()) {
	changed = make(chan struct{}, 1)
	changed <- struct{}{}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers[changed] = true
	return changed, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, changed)
	}
}

func (b *board) answer() discovery.Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all discovery.Locality
	for _, m := range b.machines {
		all.Endpoints = append(all.Endpoints, discovery.Endpoint{Addresses: []string{m}})
	}
	return discovery.Answer{
		Priorities: []discovery.Priority{{Localities: []discovery.Locality{all}}},
		Identity:   fmt.Sprint(b.machines),
	}
}

type boardSource struct{ *board }

func (boardSource) Check(bool) error { return nil }

func (w boardSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Trying("waiting for the board")
	done := make(chan struct{})
	go func() {
		changed, stop := w.watch()
		defer stop()
		for {
			select {
			case <-done:
				return
			case <-changed:
				_ = r.Update(w.answer()) // Understudy logs the error
			}
		}
	}()
	return discovery.Started{Close: func() { close(done) }}, nil
}

// All channels of the process share this source, which sends an answer whenever the board changes.
// The linger of 0 closes the source together with the last channel that uses it. A program would
// call Register in an init function.
func ExampleShared() {
	old, fresh := startBackend("the old machine"), startBackend("the new one")
	defer fresh.Stop()
	b := &board{watchers: make(map[chan struct{}]bool)}
	b.setMachines(old.address)
	discovery.Register("board", func(t *discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Source: discovery.Shared(b, 0, boardSource{b})}}, nil
	})
	conn, err := understudy.NewClient("board:///checkout", understudy.Recommended(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println("answered by", old.awaitCall(conn))
	b.setMachines(fresh.address)
	fmt.Println("answered by", fresh.awaitCall(conn))
	old.Stop()
	// Output:
	// answered by the old machine
	// answered by the new one
}
