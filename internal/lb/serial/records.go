package serial

import (
	"context"
	"log/slog"
	"time"
)

// Records passes log records to the program's logger, in order. This happens on another goroutine,
// because the logger may make a call on the very channel that logs. The zero value is ready to use.
type Records struct{ events Serializer }

// Write passes on a record with the current time. The logger may be nil.
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

// Limit allows twenty log records per ten seconds. A single fault can eject half of a thousand
// endpoints, and we don't want to log each of them.
type Limit struct {
	since time.Time
	count int
}

// Allows counts a record, and returns false if it shouldn't be logged.
func (l *Limit) Allows() bool {
	if now := time.Now(); now.Sub(l.since) >= 10*time.Second {
		*l = Limit{since: now}
	}
	l.count++
	return l.count <= 20
}
