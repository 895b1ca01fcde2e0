package outlierdetection

func (e *Endpoint[T]) Multiplier() int64 { return e.multiplier }

func (e *Endpoint[T]) IsConnected() bool { return e.connection == Connected }

func (c *Core[T]) Looked() int { return c.visited }

// Listed returns the number of endpoints in the core's list of ejected and unproven endpoints.
func (c *Core[T]) Listed() int { return len(c.doubted) }
