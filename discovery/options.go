package discovery

// SourceOption configures one kind of source, e.g. eds. The source's package has functions that
// return its options. Pass them in the Sources field of understudy.Options.
type SourceOption struct {
	set any // func(*T), for the T of OwnOption
}

// OwnOption returns an option for a source of your own. T is a type from the source's package that
// holds all its options, and set applies this one to a T. The source calls OwnOptions to read them.
func OwnOption[T any](set func(*T)) SourceOption {
	return SourceOption{set}
}

// OwnOptions applies the options that OwnOption has created for T to defaults, in the order they
// were given, and returns the result.
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
