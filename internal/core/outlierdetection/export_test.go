package outlierdetection

// Multiplier returns A50's current ejection time multiplier.
func (e *Endpoint[T]) Multiplier() int64 { return e.multiplier }

// IsConnected returns what Connected was last told.
func (e *Endpoint[T]) IsConnected() bool { return e.connected }
