package outlierdetection

// Multiplier returns A50's current ejection time multiplier.
func (e *Endpoint[T]) Multiplier() int64 { return e.multiplier }

func (e *Endpoint[T]) IsConnected() bool { return e.connection == Connected }

// Looked returns how many endpoints have been visited outside updates and sweeps.
func (c *Core[T]) Looked() int { return c.looked }
