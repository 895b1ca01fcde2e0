package discovery_test

import (
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
)

// board is a registry that notifies its watchers of changes.
type board struct {
	mu       sync.Mutex
	machines []string
	watchers map[chan struct{}]bool
}

// put replaces the machines and wakes the watchers.
func (b *board) put(machines ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.machines = machines
	for news := range b.watchers {
		select {
		case news <- struct{}{}:
		default: // a wake-up is already pending
		}
	}
}

// watch returns a channel that receives a value now and after each change. end closes the watch.
func (b *board) watch() (news chan struct{}, end func()) {
	news = make(chan struct{}, 1)
	news <- struct{}{}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers[news] = true
	return news, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, news)
	}
}

// answer returns the current machines as an answer.
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

// watched is a source that pushes.
type watched struct{ *board }

// Check implements discovery.Source. There is nothing to check locally.
func (watched) Check(bool) error { return nil }

// Start implements discovery.Source.
func (w watched) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Trying("waiting for the board")
	done := make(chan struct{})
	go func() {
		news, end := w.watch()
		defer end()
		for {
			select {
			case <-done:
				return
			case <-news:
				_ = r.Update(w.answer()) // a refusal is logged anyway, and the next change brings another answer
			}
		}
	}()
	return discovery.Started{Close: func() { close(done) }}, nil
}

// This source pushes its answers, and all channels of the process share it. It is closed with the
// last channel; an expensive watch can linger for some seconds. A program registers the source in
// an init function.
func ExampleShared() {
	old, fresh := startBackend("the old machine"), startBackend("the new one")
	defer fresh.Stop()
	b := &board{watchers: make(map[chan struct{}]bool)}
	b.put(old.address)
	discovery.Register("board", func(t *discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Source: discovery.Shared(b, 0, watched{b})}}, nil
	})
	conn, err := understudy.NewClient("board:///checkout", understudy.Recommended(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println("answered by", old.caller(conn))
	b.put(fresh.address)
	fmt.Println("answered by", fresh.caller(conn))
	old.Stop()
	// Output:
	// answered by the old machine
	// answered by the new one
}
