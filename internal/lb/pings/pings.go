// Package pings detects servers that reject keepalive pings.
//
// Such a server closes the connection with GOAWAY, ENHANCE_YOUR_CALM and the message
// "too_many_pings", and each time, gRPC doubles the keepalive interval of the whole channel. gRPC
// doesn't tell policies why, and the errors of calls rarely do either, since connections with
// active calls don't send many pings. However, one of gRPC's metrics has the reason as a label. So
// we implement a stats handler that receives metrics.
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

	"github.com/understudy-lb/understudy/internal/lb/serial"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

var grpcLog = grpclog.Component("understudy")

// The metric and its labels (gRFC A94). If a server rejected pings, reasonLabel is enhanceYourCalm.
const (
	disconnectionsMetric = "grpc.subchannel.disconnections"
	reasonLabel          = "grpc.disconnect_error"
	targetLabel          = "grpc.target"
	enhanceYourCalm      = "GOAWAY ENHANCE_YOUR_CALM"
)

// logInterval limits what we log. Otherwise every connection could log a line.
const logInterval = time.Hour

const message = "servers refuse keepalive pings"

const advice = "a server closed a connection because it was pinged too often (" + enhanceYourCalm + "), and gRPC now pings half as often: " +
	"let the servers allow the pings (understudy.Options.ServerKeepalive) before the clients send them, or do not set Keepalive"

// Detector is a stats handler that detects servers that reject pings. For calls, it's as fast as an
// empty stats handler.
type Detector struct {
	estats.UnimplementedMetricsRecorder

	logger  *slog.Logger
	records serial.Records

	mu   sync.Mutex
	last time.Time
}

// New returns a Detector that writes to gRPC's log, and also to logger unless that's nil.
func New(logger *slog.Logger) *Detector { return &Detector{logger: logger} }

func (w *Detector) RecordInt64Count(handle *estats.Int64CountHandle, _ int64, labels ...string) {
	d := handle.Descriptor()
	if d.Name != disconnectionsMetric {
		return
	}
	names := slices.Concat(d.Labels, d.OptionalLabels)
	if len(names) != len(labels) || valueOf(reasonLabel, names, labels) != enhanceYourCalm || !w.shouldLog() {
		return
	}
	target := printable.Text(printable.HideText(valueOf(targetLabel, names, labels)))
	grpcLog.Warningf("%s: %s", target, advice)
	w.records.Write(w.logger, message, slog.String("target", target), slog.String("reason", advice))
}

func (w *Detector) shouldLog() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); w.last.IsZero() || now.Sub(w.last) >= logInterval {
		w.last = now
		return true
	}
	return false
}

func valueOf(name string, names, values []string) string {
	if i := slices.Index(names, name); i >= 0 {
		return values[i]
	}
	return ""
}

func (*Detector) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (*Detector) HandleRPC(context.Context, stats.RPCStats) {}

func (*Detector) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (*Detector) HandleConn(context.Context, stats.ConnStats) {}
