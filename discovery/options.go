package discovery

// SourceOption is an option of a particular source, for the field Sources of understudy.Options.
// Each source's package defines its options.
type SourceOption struct {
	set any // a func(*T), with the T of OwnOption
}

// OwnOption returns an option for a custom source. The option calls set on a T, which is a type
// defined in the source's package. The source reads the option with OwnOptions.
func OwnOption[T any](set func(*T)) SourceOption {
	return SourceOption{set}
}

// OwnOptions returns defaults after applying the options that OwnOption created for T, in the order
// in which they were given.
func OwnOptions[T any](t *Target, defaults T) T {
	for _, given := range t.options.Sources {
		if o, ok := given.(SourceOption); ok {
			if set, ok := o.set.(func(*T)); ok {
				set(&defaults)
			}
		}
	}
	return defaults
}
