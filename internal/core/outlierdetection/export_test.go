package outlierdetection

func (e *Endpoint[T]) Multiplier() int64 { return e.multiplier }

func (e *Endpoint[T]) IsConnected() bool { return e.connection == Connected }
