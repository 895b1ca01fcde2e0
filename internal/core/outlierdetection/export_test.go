package outlierdetection

// Multiplier returns A50's current ejection time multiplier.
func (e *Endpoint[T]) Multiplier() int64 { return e.multiplier }

// IsConnected returns what Connection was last told.
func (e *Endpoint[T]) IsConnected() bool { return e.connection == Connected }

// Looked returns how many endpoints were looked at, beside updates and sweeps.
func (c *Core[T]) Looked() int { return c.looked }
