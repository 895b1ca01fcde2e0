package discovery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/lb/hierarchy"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

// TestA37 runs the scenarios in testdata/a37. Each scenario builds a channel with several discovery
// mechanisms (gRFC A37). Mechanisms named eds… push clusters, and mechanisms named dns… are polled.
// The output of a command shows the updates of the channel and the calls of ResolveNow on sources:
//
//	build eds dns     build a channel with these mechanisms, in this order
//	cluster eds       eds sends a cluster: one line per locality, "PRIORITY LOCALITY ADDRESS…", and
//	                  lines "drop CATEGORY PERCENT"
//	endpoints dns a:1 dns answers with these endpoints
//	fail dns          dns fails with the given text
//	pass 10s          wait for 10 s
//	resolve-now [a]   the policies request re-resolution for child a; without a, the channel does
//	refuse            the channel refuses updates from now on, with the given error; without it, it accepts
//	call              print the error of a call to each child without endpoints
func TestA37(t *testing.T) {
	datadriven.Walk(t, "testdata/a37", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			s := &a37{}
			datadriven.RunTest(t, path, s.runCommand)
			s.resolver.Close()
		})
	})
}

type a37 struct {
	channel
	resolver resolver.Resolver
	sources  map[string]*fakeResolvingSource
	refusal  error
}

func (s *a37) runCommand(t *testing.T, d *datadriven.TestData) string {
	var args []string
	for _, a := range d.CmdArgs {
		args = append(args, a.Key)
	}
	switch d.Cmd {
	case "build":
		s.build(t, args)
	case "cluster":
		_ = s.sources[args[0]].Update(answerOf(t, args[0], d.Input))
	case "endpoints":
		if err := s.sources[args[0]].Update(discovery.Answer{Resolved: stateOf(args[1:]...).Endpoints}); err != nil {
			s.add("told %s: %v", args[0], err)
		}
	case "fail":
		s.sources[args[0]].Fail(errors.New(d.Input))
	case "pass":
		duration, err := time.ParseDuration(args[0])
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		time.Sleep(duration)
	case "resolve-now":
		if len(args) == 0 {
			s.resolver.ResolveNow(resolver.ResolveNowOptions{})
		} else {
			s.policyResolveNow(args[0])
		}
	case "refuse":
		if s.refusal = nil; d.Input != "" {
			s.refusal = errors.New(d.Input)
		}
	case "call":
		failures := stateattr.ChannelOf(s.lastState).Failures
		for _, child := range slices.Sorted(maps.Keys(failures)) {
			s.add("%s: %s", child, failures[child])
		}
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	synctest.Wait()
	if updates := s.take(); updates != "" {
		return updates + "\n"
	}
	return "nothing\n"
}

func (s *a37) build(t *testing.T, names []string) {
	if s.resolver != nil {
		s.resolver.Close()
	}
	s.channel, s.refusal = channel{}, nil
	s.sources = make(map[string]*fakeResolvingSource)
	var mechanisms []discovery.Mechanism
	for _, name := range names {
		source := &fakeResolvingSource{onResolveNow: func() { s.add("asked %s", name) }}
		s.sources[name] = source
		mechanism := discovery.Mechanism{Name: name, Source: source, Authority: name + ".test"}
		if strings.HasPrefix(name, "eds") {
			mechanism.Source = &source.fakeSource // has no ResolveNow
		}
		mechanisms = append(mechanisms, mechanism)
	}
	s.resolver = build(t, newBuilder(mechanisms), s)
}

func (s *a37) policyResolveNow(child string) {
	stateattr.ResolveNow(s.lastState)(child, s.configured().Children[child].IgnoreReresolutionRequests)
}

func (s *a37) UpdateState(state resolver.State) error {
	s.lastState = hierarchy.Unseal(state)
	config := s.configured()
	groups := hierarchy.Group(s.lastState.Endpoints)
	s.add("state")
	for _, child := range config.Priorities {
		line := "  " + child
		localities := hierarchy.Group(groups[child])
		for _, locality := range slices.Sorted(maps.Keys(localities)) {
			var addresses []string
			for _, e := range localities[locality] {
				addresses = append(addresses, e.Addresses[0].Addr+"/"+e.Addresses[0].ServerName)
			}
			line += fmt.Sprintf(" %s[%s]", locality, strings.Join(addresses, " "))
		}
		c := config.Children[child]
		if c.IgnoreReresolutionRequests {
			line += ", ignores requests"
		}
		if drops := dropsOf(c.Config); drops != "" {
			line += ", drops " + drops
		}
		s.add("%s", line)
	}
	return s.refusal
}

type priorityConfig struct {
	Priorities []string
	Children   map[string]struct {
		Config                     json.RawMessage
		IgnoreReresolutionRequests bool
	}
}

func (s *a37) configured() priorityConfig {
	var config struct {
		LoadBalancingConfig []map[string]priorityConfig
	}
	if err := json.Unmarshal([]byte(s.config()), &config); err != nil {
		panic(err)
	}
	return config.LoadBalancingConfig[0]["understudy_priority"]
}

func dropsOf(config json.RawMessage) string {
	_, text, found := strings.Cut(string(config), `"dropCategories":`)
	if !found {
		return ""
	}
	var categories []struct {
		Category           string
		RequestsPerMillion int
	}
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&categories); err != nil {
		panic(err)
	}
	var drops []string
	for _, c := range categories {
		drops = append(drops, fmt.Sprintf("%s %d%%", c.Category, c.RequestsPerMillion/10000))
	}
	return strings.Join(drops, " ")
}

func answerOf(t *testing.T, name, text string) discovery.Answer {
	t.Helper()
	var endpoints []flat.Endpoint
	var drops []discovery.Drop
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		number := fields[0]
		if number == "drop" {
			number = fields[2]
		}
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		if fields[0] == "drop" {
			drops = append(drops, discovery.Drop{Category: fields[1], PerMillion: uint32(n) * 10_000})
			continue
		}
		for _, address := range fields[2:] {
			endpoints = append(endpoints, flat.Endpoint{Address: address, Priority: uint32(n), Locality: fields[1]})
		}
	}
	answer := flat.Answer(endpoints...)
	answer.Service, answer.Drops, answer.Empty = name, drops, true
	return answer
}
