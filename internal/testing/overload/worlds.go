package overload

import (
	"fmt"
	"time"
)

func Worlds() []World {
	var list []World
	for _, group := range [][]World{grid(), steady(), spikes(), outages(), slow(), calm(), connections()} {
		for _, w := range group {
			list = append(list, filled(w))
		}
	}
	return list
}

func grid() (list []World) {
	kinds := []struct {
		name   string
		server Server
	}{
		{"FIFO", fifo(10)},
		{"blind", Server{Workers: 10, Service: 50 * time.Millisecond, Blind: true}},
		{"refusing", Server{Workers: 10, Service: 50 * time.Millisecond, Limit: 20}},
	}
	for _, kind := range kinds {
		for _, deadline := range []float64{0.3, 1, 3} {
			for _, load := range []float64{180, 220, 260, 300, 360, 420, 500} {
				for _, clients := range []int{30, 1, 300} {
					w := World{
						Name: fmt.Sprintf("load %v/s, deadline %v s, %s, %d clients", load, deadline, kind.name, clients),
						Load: load, Deadlines: []time.Duration{seconds(deadline)}, Clients: clients,
						Priorities: each(kind.server, kind.server), From: 20 * time.Second,
						Want: Bounds{Goodput: 0.9},
					}
					if deadline == 0.3 && load > 400 {
						w.Want.Goodput = 0.87
					}
					list = append(list, w)
				}
			}
		}
	}
	return list
}

func steady() []World {
	list := []World{
		{Name: "300/s, LIFO", Load: 300, Priorities: each(lifo, lifo)},
		{Name: "300/s, refusing with UNAVAILABLE", Load: 300, Priorities: each(unavailable, unavailable)},
		{Name: "270/s of 200+100", Load: 270, Priorities: each(fifo(10), fifo(5))},
		{Name: "230/s of 200+60", Load: 230, Priorities: each(fifo(10), fifo(3))},
		{Name: "270/s of 100+200", Load: 270, Priorities: each(fifo(5), fifo(10))},
		{Name: "250/s of three times 100", Load: 250, Priorities: each(fifo(5), fifo(5), fifo(5))},
		{Name: "300/s by 1000 clients", Load: 300, Clients: 1000, From: 60 * time.Second, Length: 180 * time.Second},
		{Name: "300/s by 3000 clients", Load: 300, Clients: 3000, From: 60 * time.Second, Length: 240 * time.Second},
		{Name: "360/s by 100 clients", Load: 360, Clients: 100, Length: 120 * time.Second},
		{Name: "300/s, deadlines of 0.3, 1 and 3 s", Load: 300, Deadlines: []time.Duration{seconds(0.3), seconds(1), seconds(3)}},
		{Name: "300/s, a third without deadlines", Load: 300, Deadlines: []time.Duration{0, seconds(1), seconds(1)}},
		{Name: "300/s without deadlines", Load: 300, Deadlines: []time.Duration{0}},
		{Name: "300/s, half of the clients use round_robin", Load: 300, RoundRobin: 0.5},
		{Name: "150/s of 105+105, 10 % take 10 times as long", Load: 150, Costly: 0.1, CostlyFactor: 10, Deadlines: []time.Duration{seconds(2)}},
		{Name: "one priority, 300/s of 200", Load: 300, Priorities: each(fifo(10))},
		{Name: "one priority, 300/s of 200, blind", Load: 300, Priorities: each(blind)},
		{Name: "300/s with retries, 1000 tokens", Load: 300, Tokens: 1000},
		{Name: "560/s of 20+20 servers", Load: 560, Priorities: twenties()},
		{Name: "1000/s of 20+20 servers", Load: 1000, Priorities: twenties(), Length: 60 * time.Second},
		{Name: "560/s of 20+20 servers, 300 clients", Load: 560, Priorities: twenties(), Clients: 300},
		{Name: "500/s for 15 minutes", Load: 500, From: 300 * time.Second, Length: 900 * time.Second},
		{Name: "420/s for 15 minutes, deadline 0.3 s", Load: 420, Deadlines: []time.Duration{seconds(0.3)}, From: 300 * time.Second, Length: 900 * time.Second, Want: Bounds{Goodput: 0.87}},
		{Name: "300/s for 15 minutes", Load: 300, From: 300 * time.Second, Length: 900 * time.Second},
		{Name: "one priority, 300/s of 200, blind, for 15 minutes", Load: 300, Priorities: each(blind), From: 300 * time.Second, Length: 900 * time.Second},
	}
	for i := range list {
		if list[i].From == 0 {
			list[i].From = 20 * time.Second
		}
		if list[i].Want.Goodput == 0 {
			list[i].Want.Goodput = 0.9
		}
	}
	return list
}

var (
	blind       = Server{Workers: 10, Service: 50 * time.Millisecond, Blind: true}
	lifo        = Server{Workers: 10, Service: 50 * time.Millisecond, LIFO: true}
	unavailable = Server{Workers: 10, Service: 50 * time.Millisecond, Limit: 20, Unavailable: true}
)

func twenties() [][]Server { return [][]Server{same(20, fifo(1)), same(20, fifo(1))} }

func spikes() []World {
	spike := func(name string, load, high float64, priorities [][]Server) World {
		span := Span{20 * time.Second, 30 * time.Second}
		w := World{Name: name, Load: load, Spike: Spike{high, span}, Trouble: span, Priorities: priorities, Length: 100 * time.Second}
		w.Want.Recovery = 20 * time.Second
		if len(priorities) == 1 {
			w.Want.Recovery = 30 * time.Second
		}
		return w
	}
	return []World{
		spike("spike of 260/s over 190/s, 200+100", 190, 260, each(fifo(10), fifo(5))),
		spike("spike of 400/s over 150/s", 150, 400, each(fifo(10), fifo(10))),
		spike("spike of 600/s over 150/s, blind", 150, 600, each(blind, blind)),
		spike("one priority, spike of 400/s over 150/s", 150, 400, each(fifo(10))),
		spike("one priority, spike of 400/s over 150/s, blind", 150, 400, each(blind)),
	}
}

func from20(length int, priority, server int, f Fault) []Event {
	return []Event{{From: 20 * time.Second, To: time.Duration(20+length) * time.Second, Priority: priority, Server: server, Fault: f}}
}

func outages() []World {
	fault := func(name string, f Fault, load float64, clients int, priorities [][]Server, want Bounds) World {
		return World{Name: name, Load: load, Clients: clients, Priorities: priorities, Events: from20(30, 0, all, f), Trouble: Span{20 * time.Second, 50 * time.Second}, Length: 100 * time.Second, Want: want}
	}
	big, pair := each(fifo(20), fifo(20)), [][]Server{same(2, fifo(10)), same(2, fifo(10))}
	one := each(fifo(10))
	ten := Span{20 * time.Second, 30 * time.Second}
	// There's nothing we can do about losing 150 calls a second for 10 s. The rest allows for chance.
	onlyOne := Bounds{Lost: 1600, Recovery: 20 * time.Second}
	list := []World{
		fault("hangs for 30 s, 200/s, 1 client", Hang, 200, 1, big, Bounds{Lost: 150, Next: seconds(0.7)}),
		fault("2 endpoints hang for 30 s, 200/s, 1 client", Hang, 200, 1, pair, Bounds{Lost: 150, Next: seconds(0.7)}),
		fault("hangs for 30 s, 20/s, 1 client", Hang, 20, 1, nil, Bounds{Lost: 150}),
		fault("hangs for 30 s, 150/s, 30 clients", Hang, 150, 30, nil, Bounds{ClientLost: 25}),
		fault("hangs for 30 s, 150/s, 300 clients", Hang, 150, 300, nil, Bounds{ClientLost: 25}),
		fault("20 endpoints hang for 30 s, 200/s, 30 clients", Hang, 200, 30, twenties(), Bounds{Lost: 200}),
		fault("20 endpoints hang for 30 s, 200/s, 1 client", Hang, 200, 1, twenties(), Bounds{Lost: 200, Next: seconds(0.7)}),
		fault("hangs for 30 s, 150/s, backup of 100/s", Hang, 150, 30, each(fifo(10), fifo(5)), Bounds{Recovery: 60 * time.Second}),
		fault("UNAVAILABLE for 30 s, 200/s, 1 client", Unavailable, 200, 1, pair, Bounds{ClientLost: 25}),
		fault("UNAVAILABLE for 30 s, 150/s, 30 clients", Unavailable, 150, 30, nil, Bounds{ClientLost: 25}),
		fault("20 endpoints UNAVAILABLE for 30 s, 200/s, 30 clients", Unavailable, 200, 30, twenties(), Bounds{ClientLost: 25}),
		fault("INTERNAL for 30 s, 200/s, 1 client", Internal, 200, 1, big, Bounds{ClientLost: 25}),
		fault("20 endpoints INTERNAL for 30 s, 200/s, 30 clients", Internal, 200, 30, twenties(), Bounds{ClientLost: 25}),
		{Name: "UNAVAILABLE for ten minutes, 150/s, 30 clients", Load: 150, Events: from20(600, 0, all, Unavailable), Trouble: Span{20 * time.Second, 620 * time.Second}, Length: 700 * time.Second, Want: Bounds{ClientLost: 25}},
		{Name: "hangs for ten minutes, 150/s, 30 clients", Load: 150, Events: from20(600, 0, all, Hang), Trouble: Span{20 * time.Second, 620 * time.Second}, Length: 700 * time.Second, Want: Bounds{ClientLost: 25}},
		{Name: "one priority, UNAVAILABLE for 10 s, 150/s", Load: 150, Priorities: one, Events: from20(10, 0, all, Unavailable), Trouble: ten, Want: onlyOne},
		{Name: "one priority hangs for 10 s, 150/s", Load: 150, Priorities: one, Events: from20(10, 0, all, Hang), Trouble: ten, Want: onlyOne},
		{Name: "both hang for 10 s, 100/s", Load: 100, Events: append(from20(10, 0, all, Hang), from20(10, 1, all, Hang)...), Trouble: ten, Want: Bounds{Recovery: 20 * time.Second}},
		{Name: "both UNAVAILABLE for 10 s, 100/s", Load: 100, Events: append(from20(10, 0, all, Unavailable), from20(10, 1, all, Unavailable)...), Trouble: ten, Want: Bounds{Recovery: 20 * time.Second}},
		{Name: "both UNAVAILABLE for good, 100 tokens", Load: 100, Tokens: 100, From: 30 * time.Second, Events: append(from20(700, 0, all, Unavailable), from20(700, 1, all, Unavailable)...), Want: Bounds{Attempts: 1.2}},
		{Name: "440/s refused with UNAVAILABLE, 300 clients, 100 tokens", Load: 440, Clients: 300, Tokens: 100, Priorities: each(unavailable, unavailable), From: 20 * time.Second, Length: 120 * time.Second, Want: Bounds{Attempts: 1.2}},
		{Name: "flaps, 5 s UNAVAILABLE and 5 s good, 60/s", Load: 60, Events: flaps(10, 5, 75, Unavailable), Trouble: Span{20 * time.Second, 75 * time.Second}, Want: Bounds{ClientLost: 25}},
		{Name: "flaps, 2 s UNAVAILABLE and 2 s good, 20/s, 1 client", Load: 20, Clients: 1, Events: flaps(4, 2, 1820, Unavailable), From: 20 * time.Second, Length: 1820 * time.Second, Want: Bounds{Moves: 0.2}},
		{Name: "flaps, 2 s UNAVAILABLE and 2 s good, 10/s, 10 clients", Load: 10, Clients: 10, Events: flaps(4, 2, 1820, Unavailable), From: 20 * time.Second, Length: 1820 * time.Second, Want: Bounds{Moves: 0.2}},
		{Name: "cold backup, UNAVAILABLE for 60 s, 150/s", Load: 150, Priorities: each(fifo(10), Server{Workers: 10, Service: 50 * time.Millisecond, Cold: 20 * time.Second}), Events: from20(60, 0, all, Unavailable), Trouble: Span{20 * time.Second, 80 * time.Second}, Length: 140 * time.Second, Want: Bounds{Recovery: 60 * time.Second}},
	}
	return list
}

func flaps(period, length, to int, f Fault) (list []Event) {
	for from := 20; from < to; from += period {
		list = append(list, Event{From: time.Duration(from) * time.Second, To: time.Duration(from+length) * time.Second, Server: all, Fault: f})
	}
	return list
}

// slow is about endpoints and priorities that get slower for reasons other than load.
func slow() []World {
	slower := func(priority, server int, factor float64) Event {
		return Event{From: 20 * time.Second, To: time.Hour, Priority: priority, Server: server, Fault: Slower, Factor: factor}
	}
	fives, threes := same(2, fifo(5)), same(4, fifo(3))
	fourOf20 := []Event{slower(0, 0, 10), slower(0, 1, 10), slower(0, 2, 10), slower(0, 3, 10)}
	fourHang := append(append(append(from20(30, 0, 0, Hang), from20(30, 0, 1, Hang)...), from20(30, 0, 2, Hang)...), from20(30, 0, 3, Hang)...)
	kept := func(w World) World {
		w.From, w.Length, w.Want = 30*time.Second, 120*time.Second, Bounds{Goodput: 0.9}
		return w
	}
	return []World{
		kept(World{Name: "1 of 2 endpoints is 10 times slower, 150/s", Load: 150, Priorities: [][]Server{fives, fives}, Events: []Event{slower(0, 0, 10)}}),
		kept(World{Name: "1 of 4 endpoints is 10 times slower, 120/s", Load: 120, Priorities: [][]Server{threes, threes}, Events: []Event{slower(0, 0, 10)}}),
		kept(World{Name: "1 of 20 endpoints is 10 times slower, 150/s", Load: 150, Clients: 10, Priorities: twenties(), Events: []Event{slower(0, 0, 10)}}),
		kept(World{Name: "4 of 20 endpoints are 10 times slower, 200/s", Load: 200, Priorities: twenties(), Events: fourOf20}),
		kept(World{Name: "slower, not by load: 0.05 to 0.6 s, 15/s", Load: 15, Clients: 10, Events: []Event{slower(0, all, 12)}}),
		kept(World{Name: "one priority, slower, not by load: 0.05 to 0.7 s, 10/s", Load: 10, Clients: 10, Priorities: each(fifo(10)), Events: []Event{slower(0, all, 14)}}),
		{Name: "1 of 2 endpoints hangs for 30 s, 100/s", Load: 100, Priorities: [][]Server{fives, fives}, Events: from20(30, 0, 0, Hang), Trouble: Span{20 * time.Second, 50 * time.Second}, Length: 100 * time.Second, Want: Bounds{ClientLost: 25}},
		{Name: "4 of 20 endpoints hang for 30 s, 200/s", Load: 200, Priorities: twenties(), Events: fourHang, Trouble: Span{20 * time.Second, 50 * time.Second}, Length: 100 * time.Second, Want: Bounds{ClientLost: 25}},
	}
}

func calm() []World {
	fine := func(w World, elsewhere float64) World {
		w.Want.None, w.Want.Elsewhere = true, elsewhere
		return w
	}
	hundred := Server{Workers: 100, Service: seconds(0.7)}
	pauses := func(period, to int) (list []Event) {
		for from := 20; from < to; from += period {
			list = append(list, Event{From: time.Duration(from) * time.Second, To: time.Duration(from)*time.Second + 500*time.Millisecond, Server: all, Fault: Pause})
		}
		return list
	}
	pause := func(name string, load float64, clients int, priorities [][]Server) World {
		return World{Name: name, Load: load, Clients: clients, Priorities: priorities, Events: pauses(100, 40), Trouble: Span{20 * time.Second, seconds(20.5)}, Length: 60 * time.Second, Want: Bounds{None: true, Diverted: 20}}
	}
	return []World{
		fine(World{Name: "nothing wrong, 150/s of 200", Load: 150}, 0.005),
		fine(World{Name: "nothing wrong, 180/s of 200, 300 clients", Load: 180, Clients: 300}, 0.005),
		fine(World{Name: "nothing wrong, 150/s of 200, deadline 0.3 s", Load: 150, Deadlines: []time.Duration{seconds(0.3)}}, 0.01),
		fine(World{Name: "nothing wrong, 280/s of 20 servers", Load: 280, Priorities: twenties()}, 0.005),
		fine(World{Name: "nothing wrong, 10 % take 10 times as long, 60/s", Load: 60, Costly: 0.1, CostlyFactor: 10, Length: 120 * time.Second}, 0.005),
		fine(World{Name: "nothing wrong, 10 % take 10 times as long, 60/s, 1 client", Load: 60, Clients: 1, Costly: 0.1, CostlyFactor: 10, Length: 120 * time.Second}, 0.005),
		fine(World{Name: "nothing wrong, 30 % take 0.7 of the deadline, 20/s", Load: 20, Costly: 0.3, CostlyFactor: 14, Length: 240 * time.Second}, 0.05),
		fine(World{Name: "nothing wrong, all take 0.7 of the deadline, 20/s", Load: 20, Priorities: each(hundred, hundred), Length: 120 * time.Second}, 0.005),
		fine(World{Name: "1 % expire by nature, 150/s", Load: 150, Expire: 0.01, Length: 120 * time.Second}, 0.02),
		fine(World{Name: "1 % expire by nature, 150/s, 1 client", Load: 150, Clients: 1, Expire: 0.01, Length: 120 * time.Second}, 0.02),
		fine(World{Name: "1 % expire by nature, 50/s by 100 clients", Load: 50, Clients: 100, Expire: 0.01, Length: 240 * time.Second}, 0.05),
		fine(World{Name: "3 % expire by nature, 20/s by 10 clients", Load: 20, Clients: 10, Expire: 0.03, Length: 240 * time.Second}, 0.1),
		fine(World{Name: "20 % INTERNAL everywhere, 150/s", Load: 150, Fail: 0.2}, 0.03),
		fine(World{Name: "20 % INTERNAL everywhere, 200/s, 1 client", Load: 200, Clients: 1, Priorities: [][]Server{same(2, fifo(20)), same(2, fifo(20))}, Fail: 0.2}, 0.03),
		pause("a pause of 0.5 s, 100/s, 30 clients", 100, 30, nil),
		pause("a pause of 0.5 s, 150/s, 1 client", 150, 1, nil),
		pause("a pause of 0.5 s, 200/s, 1 client, half loaded", 200, 1, each(fifo(20), fifo(20))),
	}
}

func connections() []World {
	restarts := flaps(10, 3, 63, Down)
	hangs := Event{From: 20 * time.Second, To: 80 * time.Second, Server: all, Fault: Hang}
	killed := Event{From: 90 * time.Second, To: 120 * time.Second, Priority: 1, Server: all, Fault: Down}
	return []World{
		{Name: "hangs for a minute, then the backup is killed, 20/s, 1 client", Load: 20, Clients: 1, Events: []Event{hangs, killed}, From: 90 * time.Second, Length: 140 * time.Second, Want: Bounds{Kept: true}},
		{Name: "killed for 30 s, 150/s", Load: 150, Events: from20(30, 0, all, Down), Trouble: Span{20 * time.Second, 50 * time.Second}, Length: 100 * time.Second, Want: Bounds{ClientLost: 1}},
		{Name: "killed for 30 s, 260/s of 200+300", Load: 260, Priorities: each(fifo(10), fifo(15)), Events: from20(30, 0, all, Down), Trouble: Span{20 * time.Second, 50 * time.Second}, Length: 100 * time.Second, Want: Bounds{ClientLost: 2}},
		{Name: "restarts each 10 s, down for 3 s, 100/s", Load: 100, Events: restarts, Trouble: Span{20 * time.Second, 63 * time.Second}, Length: 100 * time.Second, Want: Bounds{ClientLost: 1}},
		{Name: "flaps, 2 s without and 2 s with connections, 20/s, 1 client", Load: 20, Clients: 1, Events: flaps(4, 2, 1820, Down), From: 20 * time.Second, Length: 1820 * time.Second, Want: Bounds{Moves: 0.2}},
		{Name: "both killed, the first comes back, 100/s", Load: 100, Events: append(from20(5, 0, all, Down), from20(60, 1, all, Down)...), Trouble: Span{20 * time.Second, 26 * time.Second}, Want: Bounds{Recovery: 3 * time.Second}},
	}
}
