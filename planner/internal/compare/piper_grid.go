package main

// piperGrid are the problems of the authors' figures.
var piperGrid = []piperProblem{
	{"bert32a100", 32, 2, 0.066550, 0.1},
	{"resnet", 32, 8, 15.758, 4},
	{"gnmt", 2, 2.5, 263.354, 131},
}
