"""The papers whose figures and tables are here: folder -> title on the page, in this order."""

PAPERS = {
    "cdp_admm": "CDP-ADMM: Gauthier, Gratton, Venkategowda and Werner, Privacy-Preserving Distributed Learning with "
    "Nonsmooth Objective Functions",
    "recycled_admm": "Recycled ADMM: Zhang, Khalili and Liu, Improving the Privacy and Accuracy of "
    "Distributed Algorithms",
    "d_zoa": "D-ZOA: Gratton, Venkategowda, Arablouei and Werner, Privacy-Preserved Distributed Learning with "
    "Zeroth-Order Optimization",
    "fdp_admm": "FDP-ADMM: Zhou and Xiang, ADMM-Based Differential Privacy Learning for Penalized Quantile Regression "
    "on Distributed Functional Data",
    "pdml": "PDML: Wang, Ishii, Du, Cheng and Chen, Privacy-Preserving Distributed Machine Learning via Local "
    "Randomization and ADMM Perturbation",
}
