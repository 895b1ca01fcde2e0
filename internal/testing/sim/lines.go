package sim

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// currentWorld is the world that gets the log lines. Only one runs at a time.
var currentWorld atomic.Pointer[World]

// Listen makes gRPC's logger pass the library's log lines to the current world. Call it once,
// before using gRPC.
func Listen() { grpclog.SetLoggerV2(logger{grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)}) }

type logger struct{ grpclog.LoggerV2 }

// line is a pattern for log lines, and a function that checks them. It returns what's wrong, or ""
// if the line is true.
type line struct {
	pattern *regexp.Regexp
	check   func(w *World, m []string) string
}

var lines = []line{
	{regexp.MustCompile(`^priority: (\S+)(?: \[Channel #\d+\])?: (failover|failback|move) from p(\d+) (.*) to p(\d+) (.*), which is (\w+), after (.*?): (.*)$`), (*World).failoverLine},
	{regexp.MustCompile(`^priority: (\S+)(?: \[Channel #\d+\])?: no priority can take calls: (.*)$`), (*World).noPriorityLine},
	{regexp.MustCompile(`^priority: (\S+)(?: \[Channel #\d+\])?: p(\d+) (.*) takes calls again, after (.*) without a usable priority$`), (*World).recoveredLine},
	{regexp.MustCompile(`^\w+: (\S+): (\d+) endpoints? in (\d+) priorit(?:y|ies)$`), (*World).updateLine},
	{regexp.MustCompile(`^(.*); the endpoints that were confirmed (\S+) ago are used$`), (*World).storedAnswerLine},
	// Even a source that works may have no endpoints.
	{regexp.MustCompile(`: its resolver returned no addresses|: no calls can be made`), func(*World, []string) string { return "" }},
	{regexp.MustCompile(`; the previous endpoints stay in use$|: no answer yet: waiting for |^eds: (?:stream to \S+ (?:failed|ended)|rejected version|\S+ did not send|cluster "\w+": (?:back to )?management server|.*no cluster )`), (*World).sourceLine},
	{regexp.MustCompile(`^outlier_detection: \S+(?: \[Channel #\d+\])?: endpoint (\S+) is ejected by `), (*World).ejectedLine},
}

const maxTargetLength = 250

func (w *World) checkLogLine(level, text string) {
	w.Log.Event("%s %s", level, text)
	if strings.Contains(text, "\n") {
		w.Log.Break(ruleNames, "a line of the log has several lines: %q", text)
	}
	text = strings.Replace(text, printable.Line(w.targetText, maxTargetLength), w.targetText, 1)
	for _, l := range lines {
		if m := l.pattern.FindStringSubmatch(text); m != nil {
			if problem := l.check(w, m); problem != "" {
				w.Log.Break(ruleNames, "%q: %s", text, problem)
			}
			return
		}
	}
}

func (w *World) updateLine(m []string) string {
	if m[1] != w.target {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// This is logged before the channel is updated. World.received compares the two.
	if now := time.Now(); w.announcedAt != now {
		w.announced, w.announcedAt = nil, now
	}
	w.announced = append(w.announced, m[2]+" in "+m[3])
	return ""
}

// maxFileSettleTime is how long a new channel may think that a file is still being written.
const maxFileSettleTime = 5 * time.Second

var clusterOfAggregate = regexp.MustCompile(`^file: sim\d: `)

func (w *World) storedAnswerLine(m []string) string {
	age, err := time.ParseDuration(m[2])
	if err != nil {
		return err.Error()
	}
	w.mu.Lock()
	last, changed := w.lastReceived, w.sourceChangedAt
	w.mu.Unlock()
	if strings.Contains(m[1], "no answer within") && time.Since(changed) < maxFileSettleTime {
		return "" // a new channel may think that the file is incomplete
	}
	if clusterOfAggregate.MatchString(m[1]) {
		return "" // the aggregate may not have named the cluster for a while
	}
	if n := sourceOf[*names](w); n != nil && n.everEmpty() {
		return "" // a name without addresses doesn't confirm the stored answer
	}
	// In two cases we don't know how old the stored answer is: if no channel got an update while
	// all sources worked, or if this channel opened while another one was closing.
	if last.IsZero() {
		return w.sourceLine(m)
	}
	slack := w.source.Lag() + time.Second
	if _, opened := w.currentChannelAndTime(); time.Since(opened) > 0 && age > time.Since(last)+slack {
		return fmt.Sprintf("the last update was %v ago", time.Since(last))
	}
	return w.sourceLine(m)
}

// ejectedLine checks that there may have been failed calls to an endpoint before it was ejected.
func (w *World) ejectedLine(m []string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, long := w.conditions[m[1]], w.settings.maxFailoverTime(1)
	switch {
	case c == nil || !w.everKnown[m[1]]:
		return "it was never one of the channel's"
	case time.Since(w.openedAt) == 0:
		return "" // the old channel may have logged this while it was closing
	case !w.sharesVary() && c.works() && c.inFlight == 0 && time.Since(c.changedAt) > long && time.Since(c.lastFailure) > long:
		return fmt.Sprintf("it has worked for %v, and no call to it has failed for %v", time.Since(c.changedAt), time.Since(c.lastFailure))
	}
	c.wasEjected = true
	return ""
}

// sourceLine checks that the source is failing or was restored recently.
func (w *World) sourceLine([]string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sourceFault == "" && time.Since(w.sourceWorksSince) > w.source.Recovery() {
		return fmt.Sprintf("the source has worked for %v", time.Since(w.sourceWorksSince))
	}
	return ""
}

var lastErrorPattern = regexp.MustCompile(`[;,] (its )?last error: [^;]*`)

// duplicateAddressPattern matches how the error of a rejected resource begins. The address in it
// doesn't exist anywhere else.
var duplicateAddressPattern = regexp.MustCompile(`address 10\.0\.\d+\.\d+:\d+ is already in `)

var addressPattern = regexp.MustCompile(`\b10\.0\.\d+\.\d+:\d+\b`)

// checkErrorText checks that the channel has had every endpoint that's mentioned, and that each of
// them was unreachable recently.
func (w *World) checkErrorText(text string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	// If a priority didn't connect in time, its error quotes the last connection error, which may
	// be old.
	text = duplicateAddressPattern.ReplaceAllString(lastErrorPattern.ReplaceAllString(text, ""), "")
	for _, address := range addressPattern.FindAllString(text, -1) {
		c := w.conditions[address]
		switch {
		case c == nil || !w.everKnown[address]:
			return address + " was never one of the channel's"
		case c.reachable() && time.Since(c.changedAt) > w.settings.maxFailoverTime(1):
			return address + " has been reachable for " + strconv.Itoa(int(time.Since(c.changedAt).Seconds())) + " s"
		}
	}
	return ""
}

func (logger) InfoDepth(_ int, args ...any) { handleLog("info:", args) }

func (logger) WarningDepth(_ int, args ...any) { handleLog("warning:", args) }

func (logger) ErrorDepth(_ int, args ...any) { handleLog("error:", args) }

func (logger) FatalDepth(_ int, args ...any) { panic(fmt.Sprint(args...)) }

func handleLog(level string, args []any) {
	w := currentWorld.Load()
	if w == nil || len(args) < 2 || args[0] != "[understudy]" {
		return
	}
	w.checkLogLine(level, strings.TrimSuffix(fmt.Sprint(args[1:]...), "\n"))
}
