// Package pings notices servers that refuse keepalive pings.
//
// Such a server ends the connection: GOAWAY, ENHANCE_YOUR_CALM, "too_many_pings". gRPC then
// pings half as often, on the whole channel, and less with each such end. A policy does not learn
// why a connection has ended, and calls are seldom under way, since a connection with calls needs
// few pings. One of gRPC's metrics has the reason, so this is a stats handler that takes metrics.
package pings

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/stats"

	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/serial"
)

var log = grpclog.Component("understudy")

// The metric and its labels; calm is the value of reasonLabel for such an end (gRFC A94).
const (
	disconnections = "grpc.subchannel.disconnections"
	reasonLabel    = "grpc.disconnect_error"
	targetLabel    = "grpc.target"
	calm           = "GOAWAY ENHANCE_YOUR_CALM"
)

// quiet is how long nothing is said after a line: each connection to each server ends.
const quiet = time.Hour

// message is the line that is logged.
const message = "servers refuse keepalive pings"

// cure is the advice in that line, beside the target.
const cure = "a server ended a connection because it was pinged too often (" + calm + "), and gRPC pings half as often from now on: " +
	"let the servers allow the pings (understudy.Options.ServerKeepalive), servers first, or set no Keepalive"

// Detector notices such servers, for the channels that have it as a stats handler. A call costs
// what a stats handler of no content costs.
type Detector struct {
	estats.UnimplementedMetricsRecorder

	logger  *slog.Logger      // nil for gRPC's log alone
	records serial.Serializer // gRPC holds a lock while it records

	mu   sync.Mutex
	last time.Time // that it was said
}

// New returns a Watch that writes into gRPC's log, and the logger, if any.
func New(logger *slog.Logger) *Detector { return &Detector{logger: logger} }

// RecordInt64Count is called by gRPC for each of its metrics of that type.
func (w *Detector) RecordInt64Count(handle *estats.Int64CountHandle, _ int64, labels ...string) {
	d := handle.Descriptor()
	if d.Name != disconnections {
		return
	}
	names := slices.Concat(d.Labels, d.OptionalLabels)
	if len(names) != len(labels) || valueOf(reasonLabel, names, labels) != calm || !w.due() {
		return
	}
	target := printable.Text(printable.HideText(valueOf(targetLabel, names, labels)))
	w.records.Enqueue(func() {
		log.Warningf("%s: %s", target, cure)
		if w.logger == nil {
			return
		}
		record := slog.NewRecord(time.Now(), slog.LevelWarn, message, 0)
		record.AddAttrs(slog.String("target", target), slog.String("reason", cure))
		if handler, ctx := w.logger.Handler(), context.Background(); handler.Enabled(ctx, record.Level) {
			_ = handler.Handle(ctx, record) // there is nowhere else to say so
		}
	})
}

// due reports whether a line is due, and notes it.
func (w *Detector) due() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); w.last.IsZero() || now.Sub(w.last) >= quiet {
		w.last = now
		return true
	}
	return false
}

// valueOf returns the value of a label, "" where a metric has none of that name.
func valueOf(name string, names, values []string) string {
	if i := slices.Index(names, name); i >= 0 {
		return values[i]
	}
	return ""
}

// TagRPC is called by gRPC, and does nothing.
func (*Detector) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC is called by gRPC, and does nothing.
func (*Detector) HandleRPC(context.Context, stats.RPCStats) {}

// TagConn is called by gRPC, and does nothing.
func (*Detector) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn is called by gRPC, and does nothing.
func (*Detector) HandleConn(context.Context, stats.ConnStats) {}
