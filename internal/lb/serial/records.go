package serial

import (
	"context"
	"log/slog"
	"time"
)

// Records passes log records to the program's logger in order, on another goroutine: the logger may
// make a call on the channel that logs. The zero value is ready to use.
type Records struct{ events Serializer }

// Write passes on a record, with the time of the call. The logger may be nil.
func (r *Records) Write(logger *slog.Logger, message string, attrs ...slog.Attr) {
	if logger == nil {
		return
	}
	record := slog.NewRecord(time.Now(), slog.LevelWarn, message, 0)
	record.AddAttrs(attrs...)
	r.events.Enqueue(func() {
		if handler, ctx := logger.Handler(), context.Background(); handler.Enabled(ctx, record.Level) {
			_ = handler.Handle(ctx, record)
		}
	})
}

// Limit bounds how often we log something: twenty times in ten seconds, as a fault may eject half
// of a thousand endpoints.
type Limit struct {
	since time.Time
	count int
}

// Allows counts a record. If the result is false, do not log it.
func (l *Limit) Allows() bool {
	if now := time.Now(); now.Sub(l.since) >= 10*time.Second {
		*l = Limit{since: now}
	}
	l.count++
	return l.count <= 20
}
