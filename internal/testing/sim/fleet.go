package sim

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/eds"
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

type FleetConfig struct {
	Clients  int
	Backends int
	CallEach time.Duration
}

type Second struct {
	Calls       []int
	Connections []int
	Control     int
	Failed      int
}

type FleetRecord struct {
	Seconds []Second
	Cost    Cost
}

type Cost struct{ Bytes, Goroutines int }

// When things happen, in seconds after the start.
const (
	FleetRestart = 60
	FleetLoss    = 180
	FleetReturn  = 240
	FleetNoPlane = 420
	FleetPlane   = 480
	FleetEnd     = 600
)

const (
	restartInterval = 20
	restartTime     = 5
)

// fleet is a set of clients of the same management server. Each client has its own connection to
// it.
type fleet struct {
	config     FleetConfig
	network    *Network
	control    *control
	priorities [2][]*Backend
	calls      map[string]*atomic.Int64
	failed     atomic.Int64
	channels   []*grpc.ClientConn
}

func RunFleet(config FleetConfig) (FleetRecord, error) {
	before := currentCost()
	f, stop, err := beginFleet(config)
	if err != nil {
		return FleetRecord{}, err
	}
	var record FleetRecord
	last := f.totals()
	for second := range FleetEnd {
		f.injectFaults(second)
		sleep(time.Second)
		now := f.totals()
		record.Seconds = append(record.Seconds, f.second(last, now))
		last = now
		if second == FleetRestart/2 {
			record.Cost = currentCost().minus(before).perClient(config.Clients)
		}
	}
	stop()
	return record, nil
}

// FleetCost returns the cost of one client half a minute after the start. It must be called in a
// synctest bubble.
func FleetCost(config FleetConfig) (Cost, error) {
	before := currentCost()
	_, stop, err := beginFleet(config)
	if err != nil {
		return Cost{}, err
	}
	defer stop()
	sleep(FleetRestart / 2 * time.Second)
	return currentCost().minus(before).perClient(config.Clients), nil
}

func currentCost() Cost {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // a second collection frees objects in pools and those with finalizers
	runtime.ReadMemStats(&m)
	return Cost{int(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()} //nolint:gosec // less than 8 EB
}

func (c Cost) minus(before Cost) Cost {
	return Cost{c.Bytes - before.Bytes, c.Goroutines - before.Goroutines}
}

func (c Cost) perClient(clients int) Cost { return Cost{c.Bytes / clients, c.Goroutines / clients} }

func beginFleet(config FleetConfig) (f *fleet, stop func(), err error) {
	f = &fleet{config: config, network: NewNetwork(func(string, ...any) {}), calls: make(map[string]*atomic.Int64)}
	truth := make(EndpointSet, len(f.priorities))
	for tier := range f.priorities {
		l := Locality{Zone: string(rune('a' + tier)), Weight: 1}
		for i := range config.Backends {
			address := fmt.Sprintf("10.%d.0.%d:443", tier+1, i+1)
			f.calls[address] = new(atomic.Int64)
			b := NewBackend(f.network, address, func(to string) { f.calls[to].Add(1) })
			b.Up()
			f.priorities[tier] = append(f.priorities[tier], b)
			l.Endpoints = append(l.Endpoints, Endpoint{Address: address, Weight: 1})
		}
		truth[tier] = Tier{l}
	}
	f.control = newControl(f.network, newLog(), controlAddress, false, truth)
	if err := f.start(); err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	var clients sync.WaitGroup
	for _, cc := range f.channels {
		clients.Go(func() { f.traffic(cc, done) })
	}
	return f, func() {
		close(done)
		clients.Wait()
		f.close()
	}, nil
}

func (f *fleet) start() error {
	for range f.config.Clients {
		network := &adsclient.Network{Dial: f.network.Dial} // with a common adsclient.Network, clients would share a stream
		builders := given.Builders(given.Sources(eds.WithInsecure()), given.Sources(discovery.OwnOption(func(o *adsclient.Options) { o.Network = network })))
		cc, err := grpc.NewClient("eds://"+controlAddress+"/"+cluster,
			grpc.WithResolvers(builders...),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(f.network.Dial),
			grpc.WithReadBufferSize(4<<10), grpc.WithWriteBufferSize(4<<10))
		if err != nil {
			return err
		}
		f.channels = append(f.channels, cc)
	}
	return nil
}

func (f *fleet) traffic(cc *grpc.ClientConn, done <-chan struct{}) {
	f.call(cc)
	pause := time.NewTimer(time.Duration(rand.Int64N(int64(f.config.CallEach)))) //nolint:gosec // draws the load
	defer pause.Stop()
	for {
		select {
		case <-done:
			return
		case <-pause.C:
			pause.Reset(f.config.CallEach)
			f.call(cc)
		}
	}
}

func (f *fleet) call(cc *grpc.ClientConn) {
	if _, err := new(call).invoke(cc, 10*time.Second, true); err != nil {
		f.failed.Add(1)
	}
}

func (f *fleet) injectFaults(second int) {
	for i, b := range f.priorities[0] {
		switch second {
		case FleetRestart + i*restartInterval:
			b.Drain()
		case FleetRestart + i*restartInterval + restartTime:
			b.Up()
		case FleetLoss:
			f.refuse(b.Address)
			b.Down()
		case FleetReturn:
			b.Up()
			f.network.SetLink(b.Address, Link{})
		}
	}
	switch second {
	case FleetNoPlane:
		f.refuse(controlAddress)
		f.control.down()
	case FleetPlane:
		f.control.up()
		f.network.SetLink(controlAddress, Link{})
	}
}

func (f *fleet) refuse(address string) { f.network.SetLink(address, Link{Refuse: true}) }

type totals map[string][2]int

func (f *fleet) totals() totals {
	now := make(totals)
	for address, calls := range f.calls {
		dials, _ := f.network.Dials(address)
		now[address] = [2]int{int(calls.Load()), dials}
	}
	dials, _ := f.network.Dials(controlAddress)
	now[controlAddress] = [2]int{int(f.failed.Load()), dials}
	return now
}

func (f *fleet) second(before, now totals) Second {
	count := func(address string, column int) int { return now[address][column] - before[address][column] }
	s := Second{Failed: count(controlAddress, 0), Control: count(controlAddress, 1)}
	for _, backends := range f.priorities {
		for _, b := range backends {
			s.Calls = append(s.Calls, count(b.Address, 0))
			s.Connections = append(s.Connections, count(b.Address, 1))
		}
	}
	return s
}

func (f *fleet) close() {
	for _, cc := range f.channels {
		_ = cc.Close()
	}
	for _, tier := range f.priorities {
		for _, b := range tier {
			b.Down()
		}
	}
	f.control.down()
	sleep(time.Minute)
}
