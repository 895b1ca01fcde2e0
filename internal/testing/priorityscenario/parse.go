package priorityscenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	core "github.com/understudy-lb/understudy/internal/core/priority"
)

func drive(target Target, d *datadriven.TestData) error {
	endpoints, script, err := parseInput(d.Input)
	if err != nil {
		return err
	}
	target.Script(script)
	var words []string
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) == 0 {
			words = append(words, arg.Key)
		}
	}
	switch d.Cmd {
	case "update":
		u, err := parseUpdate(d.CmdArgs)
		if err != nil {
			return err
		}
		u.Endpoints = endpoints
		target.Update(u)
	case "report":
		r, err := parseReport(words[1:])
		if err != nil {
			return err
		}
		target.Report(words[0], r)
	case "advance":
		duration, err := time.ParseDuration(words[0])
		if err != nil {
			return err
		}
		target.Advance(duration)
	case "exit-idle":
		target.ExitIdle()
	case "resolver-error":
		target.ResolverError(errors.New(strings.Join(words, " ")))
	case "re-resolve":
		target.Resolve(words[0])
	case "close":
		target.Close()
	default:
		return fmt.Errorf("unknown directive %q", d.Cmd)
	}
	return nil
}

func DefaultConfig(priorities ...string) core.Config {
	return core.Config{
		Children:              priorities,
		Priorities:            priorities,
		FailoverTimeout:       10 * time.Second,
		ChildRetention:        15 * time.Minute,
		RemovedChildRetention: 15 * time.Minute,
	}
}

func durationsOf(c *core.Config) map[string]*time.Duration {
	return map[string]*time.Duration{
		"timeout":   &c.FailoverTimeout,
		"retention": &c.ChildRetention,
		"removed":   &c.RemovedChildRetention,
	}
}

func parseUpdate(args []datadriven.CmdArg) (Update, error) {
	var priorities []string
	for _, arg := range args {
		if len(arg.Vals) == 0 {
			priorities = append(priorities, arg.Key)
		}
	}
	u := Update{Config: DefaultConfig(priorities...)}
	durations := durationsOf(&u.Config)
	for _, arg := range args {
		switch duration := durations[arg.Key]; {
		case len(arg.Vals) == 0:
		case arg.Key == "children":
			u.Config.Children = arg.Vals
		case arg.Key == "of":
			var err error
			if u.Config.SourcePriorities, err = numbers(arg.Vals); err != nil {
				return u, err
			}
		case arg.Key == "ignore":
			u.Ignore = arg.Vals
		case arg.Key == "overflow":
			u.Config.Overflow = arg.Vals[0] == "yes"
		case arg.Key == "warm":
			n, err := numbers(arg.Vals)
			if err != nil {
				return u, err
			}
			u.Config.WarmStandby = n[0]
		case duration == nil:
			return u, fmt.Errorf("unknown option %q", arg.Key)
		default:
			var err error
			if *duration, err = time.ParseDuration(arg.Vals[0]); err != nil {
				return u, err
			}
		}
	}
	return u, nil
}

func numbers(texts []string) (list []int, err error) {
	for _, text := range texts {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

func parseReport(words []string) (Report, error) {
	if len(words) == 0 {
		return Report{}, errors.New("want a state")
	}
	for s := core.Idle; s <= core.TransientFailure; s++ {
		if s.String() == words[0] {
			return Report{s, strings.Join(words[1:], " ")}, nil
		}
	}
	return Report{}, fmt.Errorf("unknown state %q", words[0])
}

func parseInput(input string) ([]Endpoint, map[string][]Reaction, error) {
	var endpoints []Endpoint
	script := make(map[string][]Reaction)
	for line := range strings.Lines(input) {
		words := strings.Fields(line)
		child, isReaction := strings.CutSuffix(words[0], ":")
		if !isReaction {
			endpoints = append(endpoints, Endpoint{words[0], words[1:]})
			continue
		}
		switch words[1] {
		case "report":
			r, err := parseReport(words[2:])
			if err != nil {
				return nil, nil, err
			}
			script[child] = append(script[child], Reaction{Report: r})
		case "error":
			script[child] = append(script[child], Reaction{Err: errors.New(strings.Join(words[2:], " "))})
		default:
			return nil, nil, fmt.Errorf("unknown reaction %q", words[1])
		}
	}
	return endpoints, script, nil
}
