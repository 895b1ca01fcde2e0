package kubernetes

import (
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
)

// runScenarios runs the file testdata/watches/NAME.txt. Its commands are:
//
//	start       start a source of the Service web, whose API server follows the input
//	change      the API server follows the input from now on
//	pass 10s    let time pass, and print the reports of the source; see takeDistinct
//	requests 3  print the first three requests: "all", or the version at which the watch begins
//
// The input of start has a block for each request, and a line "--" between two blocks. The last
// block is for all later requests, too. A response ends after the last line of its block:
//
//	added|modified NAME ADDRESS…    a slice, whose port is named grpc; an endpoint may also be JSON
//	two-ports NAME ADDRESS…         a modified slice, for which the target has to name the port
//	deleted NAME
//	bookmark VERSION, end VERSION   end is the bookmark after the initial slices
//	error CODE                      an error event
//	wait 10s
//	refuse, status CODE             the request fails
//	lost                            the connection ends in the middle of the response
//	open                            the response does not end
func runScenarios(t *testing.T, name string) {
	synctest.Test(t, func(t *testing.T) {
		s := &scenario{close: func() {}}
		defer func() { s.close() }()
		datadriven.RunTest(t, "testdata/watches/"+name+".txt", s.run)
	})
}

type scenario struct {
	*fakeAPIServer
	blocks  atomic.Pointer[[]string]
	log     *reportLog
	close   func()
	printed []string
}

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "start", "change":
		if d.Cmd == "start" {
			s.close()
			s.printed = nil
		}
		blocks := strings.Split(d.Input, "\n--\n")
		if s.blocks.Store(&blocks); d.Cmd == "start" {
			s.fakeAPIServer = &fakeAPIServer{serve: s.respond}
			s.log, s.close = startSource(t, s.fakeAPIServer, query{})
		}
		return ""
	case "pass":
		duration, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		time.Sleep(duration)
		return s.takeDistinct()
	case "requests":
		kinds, _ := s.requests()
		n, err := strconv.Atoi(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return strings.Join(strings.Fields(kinds)[:n], " ") + "\n"
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

func (s *scenario) respond(n int, _ url.Values, w io.Writer, done <-chan struct{}) int {
	blocks := *s.blocks.Load()
	for line := range strings.SplitSeq(blocks[min(n, len(blocks)-1)], "\n") {
		what, rest, _ := strings.Cut(line, " ")
		name, addresses, _ := strings.Cut(rest, " ")
		var endpoints []string
		for _, e := range strings.Fields(addresses) {
			if e[0] != '{' {
				e = `{"addresses":["` + e + `"]}`
			}
			endpoints = append(endpoints, e)
		}
		switch what {
		case "added", "modified", "deleted":
			writeAll(w, sliceEvent(strings.ToUpper(what), name, strings.Join(endpoints, ",")))
		case "two-ports":
			writeAll(w, twoPorts("MODIFIED", name, strings.Join(endpoints, ",")))
		case "bookmark", "end":
			writeAll(w, bookmark(rest, what == "end"))
		case "error":
			writeAll(w, `{"type":"ERROR","object":{"code":`+rest+`}}`+"\n")
		case "wait":
			duration, err := time.ParseDuration(rest)
			if err != nil {
				panic(err)
			}
			writeAll(w, "") // the response begins
			select {
			case <-time.After(duration):
			case <-done:
			}
		case "refuse":
			return -1
		case "status":
			code, _ := strconv.Atoi(rest)
			return code
		case "lost":
			_ = w.(*firstWrite).to.(*io.PipeWriter).CloseWithError(io.ErrUnexpectedEOF)
		case "open":
			return waitUntilDone(done)
		default:
			panic("unknown line " + line)
		}
	}
	return 0
}

// takeDistinct leaves out reports that were printed since the last update or confirmation, because the
// number of attempts is random.
func (s *scenario) takeDistinct() string {
	var text strings.Builder
	for line := range strings.SplitSeq(s.log.takeReports(), "\n") {
		_, report, _ := strings.Cut(line, " ")
		if strings.HasSuffix(report, ": <nil>") {
			continue // a doubt has ended, which we only hear if it was still waiting for its delivery
		}
		if strings.HasPrefix(report, "update") || report == "confirm" {
			s.printed = nil
		} else if slices.Contains(s.printed, report) {
			continue
		}
		s.printed = append(s.printed, report)
		text.WriteString(report + "\n")
	}
	return text.String()
}

func TestSlicesAreDeletedOneByOne(t *testing.T)        { runScenarios(t, "deleted_one_by_one") }
func TestLastSliceIsMissingFromNextWatch(t *testing.T) { runScenarios(t, "missing_from_next_watch") }
func TestDeletedSliceExpiresWhileServerIsDown(t *testing.T) {
	runScenarios(t, "deleted_while_server_is_down")
}
func TestOneOfSeveralSlicesIsDeleted(t *testing.T) { runScenarios(t, "one_of_several_is_deleted") }
func TestServiceIsCreatedAgain(t *testing.T)       { runScenarios(t, "created_again") }
func TestRestoredServer(t *testing.T)              { runScenarios(t, "restored") }
func TestWatchesThatEndImmediately(t *testing.T)   { runScenarios(t, "end_immediately") }
func TestServerIsDownForAnHour(t *testing.T)       { runScenarios(t, "down_for_an_hour") }
func TestPodsWithUnknownPort(t *testing.T)         { runScenarios(t, "unknown_port") }
