// Package zero is what DeepSpeed's ZeRO (0.19.8) does outside the ops: the settings of its
// configuration file, and which parameters stage 3 holds gathered at every moment of a step.
package zero
