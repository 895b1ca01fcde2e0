package outlierdetection

// Multiplier returns A50's current ejection time multiplier.
func (e *Endpoint[T]) Multiplier() int64 { return e.multiplier }

// IsConnected reports whether the endpoint is Connected.
func (e *Endpoint[T]) IsConnected() bool { return e.connection == Connected }

// Looked returns the number of endpoints that were visited outside updates and sweeps.
func (c *Core[T]) Looked() int { return c.looked }
