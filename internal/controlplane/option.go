package controlplane

// Option says what Start starts.
type Option func(*settings)

type settings struct {
	controllers   bool
	nodes         int
	apiserverArgs []string
}

// WithControllers adds kube-controller-manager, kube-scheduler and three simulated nodes.
func WithControllers() Option {
	return func(s *settings) { s.controllers = true }
}

// WithNodes is WithControllers with this number of simulated nodes.
func WithNodes(n int) Option {
	return func(s *settings) { s.controllers, s.nodes = true, n }
}

// WithAPIServerArgs adds arguments of kube-apiserver, such as "--enable-admission-plugins=AlwaysPullImages".
func WithAPIServerArgs(args ...string) Option {
	return func(s *settings) { s.apiserverArgs = append(s.apiserverArgs, args...) }
}
